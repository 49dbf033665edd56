package symbolize

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxTouched bounds the addresses that are looked up in one fuzzed file.
const maxTouched = 24

// FuzzELF opens a file and asks everything of it. The seeds are small libraries: with DWARF
// 4, 5 and 64-bit DWARF, clang's, compressed sections, .gnu_debugdata, notes of all kinds.
func FuzzELF(f *testing.F) {
	seeds, err := filepath.Glob("testdata/elf/*")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range seeds {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := NewFile(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		defer file.Close()
		addresses := []uint64{0, 1, math.MaxUint64, file.Header().Entry}
		file.EachSymbol(func(symbol Symbol) bool {
			if symbol.Name == "" || len(symbol.Name) > maxName {
				t.Fatalf("name of %d bytes", len(symbol.Name))
			}
			addresses = append(addresses, symbol.Address, symbol.Address+symbol.Size/2)
			return len(addresses) < maxTouched
		})
		for _, address := range addresses {
			if symbol, ok := file.FunctionAt(address); ok && symbol.Address > address {
				t.Fatalf("function %+v holds address %#x", symbol, address)
			}
			if symbol, ok := file.ObjectAt(address); ok && address-symbol.Address >= symbol.Size {
				t.Fatalf("object %+v holds address %#x", symbol, address)
			}
			if offset, ok := file.Offset(address); ok {
				if _, back := file.Address(offset); !back {
					t.Fatalf("byte %#x of the file has no address", offset)
				}
			}
			if positions := file.positions(address); len(positions) > maxInlineDepth {
				t.Fatalf("%d levels of inlining", len(positions))
			}
			file.deliversSignal(address)
		}
		file.debugLink()
		file.BuildID()
	})
}

func FuzzMaps(f *testing.F) {
	own, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(own))
	f.Add("7f0000000000-7f0000001000 r-xp 00001000 fd:01 1234 /usr/lib/a b.so (deleted)\n")
	f.Add("00400000-00401000 --xp 00000000 00:00 0 \nffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n")
	f.Fuzz(func(t *testing.T, text string) {
		mappings, err := ParseMaps(strings.NewReader(text))
		if err != nil {
			return
		}
		var h history
		h.replace(nil)
		for _, m := range mappings {
			if m.Start >= m.End {
				t.Fatalf("empty mapping %+v", m)
			}
			h.add(m)
			if r := h.find(m.Start, 0); r == nil || r.Mapping != m {
				t.Fatalf("the newest mapping %+v is not found", m)
			}
		}
		h.replace(mappings)
		for i := 1; i < len(h.live); i++ {
			h.find(h.live[i].Start, i)
			h.before(h.live[i].Start)
		}
	})
}

func FuzzPerfMap(f *testing.F) {
	f.Add("7f00 10 a\n7f08 10 b c d\n", uint64(0x7f09))
	f.Add("0x7f00 0x10 LazyCompile:*x y.js:1\nffffffffffffffff 1 end\n10 0 empty\n", uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, text string, address uint64) {
		symbols, used, err := parsePerfMap(strings.NewReader(text), 0)
		if err != nil || used > int64(len(text)) {
			t.Fatalf("used %d bytes of %d: %v", used, len(text), err)
		}
		for _, s := range symbols {
			if s.start >= s.end || s.name == "" || len(s.name) > 3*maxPerfName || !utf8.ValidString(s.name) {
				t.Fatalf("symbol %+v", s)
			}
		}
		m := perfMap{symbols: symbols}
		m.sort()
		m.lookup(address)
	})
}

func FuzzDemangle(f *testing.F) {
	for mangled := range demangled {
		f.Add(mangled)
	}
	f.Fuzz(func(t *testing.T, name string) {
		readable := Demangle(name)
		if !utf8.ValidString(readable) {
			t.Fatalf("%q becomes %q", name, readable)
		}
		if limit := max(3*len(name), 4<<maxDemangled); len(readable) > limit {
			t.Fatalf("%d bytes become %d", len(name), len(readable))
		}
	})
}
