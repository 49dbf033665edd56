package symbolize

import (
	"strings"
	"unicode/utf8"

	"github.com/ianlancetaylor/demangle"
)

// maxDemangled is the power of two that bounds a demangled name: a mangled name of a few
// hundred bytes can stand for megabytes of text.
const maxDemangled = 12

// Demangle returns the name as the programmer wrote it: a C++ or Rust name without the types
// of its parameters, and any name without what the compiler appends to a copy that it
// split off or specialised (".cold", ".part.0", ".constprop.0", …). Other names, and those too
// long to be worth it, come back as they are.
func Demangle(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if len(name) > maxName || !mangled(name) {
		return cutClone(name)
	}
	readable := ""
	err := guard("demangle", func() (err error) {
		readable, err = demangle.ToString(name, demangle.NoParams, demangle.NoClones, demangle.MaxLength(maxDemangled))
		return err
	})
	if err != nil || readable == "" || !utf8.ValidString(readable) {
		return cutClone(name)
	}
	return readable
}

// mangled says whether a name is worth a try: C++ and legacy Rust begin with _Z, Rust v0
// with _R; macOS and some assemblers put one more underscore before.
func mangled(name string) bool {
	bare := strings.TrimLeft(name, "_")
	return bare != name && bare != "" && (bare[0] == 'Z' || bare[0] == 'R')
}

// cutClone cuts off what GCC and LLVM append to the copies of a function.
func cutClone(name string) string {
	for _, suffix := range []string{".cold", ".part", ".constprop", ".isra", ".lto_priv", ".llvm", ".localalias"} {
		if at := strings.Index(name, suffix); at > 0 {
			if end := at + len(suffix); end == len(name) || name[end] == '.' {
				name = name[:at]
			}
		}
	}
	return name
}
