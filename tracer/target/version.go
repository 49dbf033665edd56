package target

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
)

// The versions as the files themselves carry them.
var (
	glibcBanner   = regexp.MustCompile(`GNU C Library [^\n\x00]{0,80}release version (\d+\.\d+(?:\.\d+)?)`)
	glibcPlain    = regexp.MustCompile(`glibc (\d+\.\d+(?:\.\d+)?)`)
	jemallocFull  = regexp.MustCompile(`\x00(\d+\.\d+\.\d+)-\d+-g[0-9a-f]{8,40}\x00`)
	tcmallocFull  = regexp.MustCompile(`gperftools (\d+\.\d+(?:\.\d+)?)`)
	muslFull      = regexp.MustCompile(`\x00(1\.\d+\.\d+)(?:-git[-0-9a-z]*)?\x00`)
	mallocWord    = regexp.MustCompile(`(malloc)\x00`)
	maxVersionRun = uint64(64 << 20) // bytes of a section that are searched
)

func glibcVersion(o *object) string {
	if v := searchConstants(o, glibcBanner); v != "" {
		return v
	}
	return searchConstants(o, glibcPlain)
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

// searchConstants searches the read-only data of a file, in pieces.
func searchConstants(o *object, pattern *regexp.Regexp) string {
	const overlap = 256
	buffer := make([]byte, chunkSize+overlap)
	for _, section := range o.elf.Sections {
		if section.Type != elf.SHT_PROGBITS || section.Flags&(elf.SHF_ALLOC|elf.SHF_WRITE|elf.SHF_EXECINSTR|elf.SHF_COMPRESSED) != elf.SHF_ALLOC {
			continue
		}
		for at := uint64(0); at < min(section.Size, maxVersionRun); at += chunkSize {
			n, err := section.ReadAt(buffer, int64(at))
			if match := pattern.FindSubmatch(buffer[:n]); match != nil {
				return string(match[1])
			}
			if n == 0 || err != nil && err != io.EOF {
				break
			}
		}
	}
	return ""
}
