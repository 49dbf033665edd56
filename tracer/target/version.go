package target

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
)

// maxConstants bounds how many bytes of a section are searched.
const maxConstants = 64 << 20

// The versions as the files themselves carry them.
var (
	glibcBanner  = regexp.MustCompile(`GNU C Library [^\n\x00]{0,80}release version (\d+\.\d+(?:\.\d+)?)`)
	glibcAlone   = regexp.MustCompile(`\x00(2\.\d\d)\x00`)
	glibcPlain   = regexp.MustCompile(`glibc (\d+\.\d+(?:\.\d+)?)`)
	jemallocFull = regexp.MustCompile(`\x00(\d+\.\d+\.\d+)-\d+-g[0-9a-f]{8,40}\x00`)
	tcmallocFull = regexp.MustCompile(`gperftools (\d+\.\d+(?:\.\d+)?)`)
	muslFull     = regexp.MustCompile(`\x00(1\.\d+\.\d+)(?:-git[-0-9a-z]*)?\x00`)
	mallocWord   = regexp.MustCompile(`(malloc)\x00`)
)

func glibcVersion(o *object) string {
	if v := searchConstants(o, glibcBanner); v != "" {
		return v
	}
	if v := searchConstants(o, glibcPlain); v != "" {
		return v
	}
	return onlyConstant(o, glibcAlone)
}

func jemallocVersion(o *object) string { return searchConstants(o, jemallocFull) }
func tcmallocVersion(o *object) string { return searchConstants(o, tcmallocFull) }
func muslVersion(o *object) string     { return searchConstants(o, muslFull) }

// mimallocVersion reads the number that mi_version returns: its code is one move of a
// constant, 209 for 2.0.9 and 30600 for 3.6.0.
func mimallocVersion(o *object) string {
	found, ok := o.symbols["mi_version"]
	if !ok || o.elf.Machine != elf.EM_X86_64 {
		return ""
	}
	offset, ok := o.fileOffset(found.address)
	if !ok {
		return ""
	}
	code := bytes.TrimPrefix(o.code(offset, 16), []byte("\xf3\x0f\x1e\xfa"))
	if len(code) < 5 || code[0] != 0xb8 {
		return ""
	}
	number := binary.LittleEndian.Uint32(code[1:])
	switch {
	case number >= 100 && number < 1000: // up to 2.x
		return fmt.Sprintf("%d.%d.%d", number/100, number/10%10, number%10)
	case number >= 10000 && number < 1000000: // two digits each from 3.0 on
		return fmt.Sprintf("%d.%d.%d", number/10000, number/100%100, number%100)
	}
	return ""
}

// searchConstants returns the first match of the pattern's group in the read-only data.
func searchConstants(o *object, pattern *regexp.Regexp) (found string) {
	eachConstant(o, func(data []byte) bool {
		if match := pattern.FindSubmatch(data); match != nil {
			found = string(match[1])
		}
		return found == ""
	})
	return found
}

// onlyConstant is searchConstants for a pattern that chance may match: it counts only when
// all matches agree. A static program holds the bare number of its glibc, but may hold others.
func onlyConstant(o *object, pattern *regexp.Regexp) string {
	found := map[string]bool{}
	eachConstant(o, func(data []byte) bool {
		for _, match := range pattern.FindAllSubmatch(data, -1) {
			found[string(match[1])] = true
		}
		return len(found) < 2
	})
	if len(found) == 1 {
		for only := range found {
			return only
		}
	}
	return ""
}

// eachConstant hands over the read-only data of a file in overlapping pieces, until look
// returns false.
func eachConstant(o *object, look func(data []byte) bool) {
	const overlap = 256
	var buffer []byte
	for _, section := range o.elf.Sections {
		if section.Type != elf.SHT_PROGBITS || section.Flags&(elf.SHF_ALLOC|elf.SHF_WRITE|elf.SHF_EXECINSTR|elf.SHF_COMPRESSED) != elf.SHF_ALLOC {
			continue
		}
		if wanted := min(section.Size, chunkSize+overlap); uint64(len(buffer)) < wanted {
			buffer = make([]byte, wanted)
		}
		for at := uint64(0); at < min(section.Size, maxConstants); at += chunkSize {
			n, err := section.ReadAt(buffer, int64(at))
			if !look(buffer[:n]) {
				return
			}
			if n == 0 || err != nil && err != io.EOF {
				break
			}
		}
	}
}
