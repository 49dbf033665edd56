package symbolize

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"
)

// Limits of symbol tables.
const (
	maxSymbols   = 4 << 20   // entries kept of one table, 16 bytes each
	maxRawTable  = 256 << 20 // bytes of the table in the file; it is read in pieces
	maxName      = 16 << 10  // bytes of one name; C++ templates do reach this
	maxAliases   = 64        // symbols looked at around one address
	maxUnsized   = 64 << 10  // how far a function without a size is believed to reach
	symbolStride = 24        // bytes of an elf.Sym64
)

// Symbol is a named piece of a file: a function or a data object.
type Symbol struct {
	Name     string // as the file has it, mangled, without its version
	Address  uint64 // virtual, as the file counts
	Size     uint64 // bytes; 0 where assembly did not say
	Function bool   // otherwise a data object
}

// entry is a symbol as the table keeps it: the name stays in the file until it is asked for.
type entry struct {
	address uint64
	size    uint32 // saturates
	name    uint32 // offset in the string table
}

// table is one symbol table, sorted by address.
type table struct {
	functions, objects []entry
	names              io.ReaderAt
	namesSize          int64
	code               []addressRange // where the sections of code lie
	held               int64          // bytes of memory that the names lie in
}

type addressRange struct{ low, high uint64 }

// readTable reads the symbol table of a kind; nil without an error when there is none.
func readTable(file *elf.File, kind elf.SectionType) (*table, error) {
	section := file.SectionByType(kind)
	if section == nil || section.FileSize == 0 {
		return nil, nil
	}
	if section.Flags&elf.SHF_COMPRESSED != 0 || section.FileSize > maxRawTable ||
		int(section.Link) >= len(file.Sections) {
		return nil, fmt.Errorf("section %s: %w", section.Name, errLimit)
	}
	names := file.Sections[section.Link]
	if names.Type != elf.SHT_STRTAB || names.Flags&elf.SHF_COMPRESSED != 0 || names.FileSize > math.MaxUint32 {
		return nil, fmt.Errorf("section %s: no strings", names.Name)
	}
	t := &table{names: names, namesSize: int64(names.FileSize)}
	for _, s := range file.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 && s.Size > 0 {
			t.code = append(t.code, addressRange{s.Addr, s.Addr + s.Size})
		}
	}
	if err := t.load(section, file.Sections); err != nil {
		return nil, err
	}
	return t, nil
}

// load reads the table piece by piece and keeps functions and objects.
func (t *table) load(section *elf.Section, sections []*elf.Section) error {
	piece := make([]byte, symbolStride*2730) // about 64 KiB
	for at := int64(0); at < int64(section.FileSize); at += int64(len(piece)) {
		n, err := section.ReadAt(piece, at)
		if err != nil && err != io.EOF {
			return fmt.Errorf("section %s: %w", section.Name, err)
		}
		for raw := piece[:n]; len(raw) >= symbolStride; raw = raw[symbolStride:] {
			t.take(raw, sections)
		}
		if len(t.functions)+len(t.objects) > maxSymbols {
			return fmt.Errorf("section %s: more than %d symbols: %w", section.Name, maxSymbols, errLimit)
		}
		if err == io.EOF {
			break
		}
	}
	for _, entries := range []*[]entry{&t.functions, &t.objects} {
		*entries = slices.Clip(*entries)
		slices.SortFunc(*entries, func(a, b entry) int {
			return cmp.Or(cmp.Compare(a.address, b.address), cmp.Compare(a.size, b.size))
		})
	}
	return nil
}

// take keeps one raw symbol (an elf.Sym64: name, info, other, section, value, size) if it
// names code or data. Assembly labels count as functions where they lie in code.
func (t *table) take(raw []byte, sections []*elf.Section) {
	index := elf.SectionIndex(binary.LittleEndian.Uint16(raw[6:]))
	size := binary.LittleEndian.Uint64(raw[16:])
	e := entry{
		name:    binary.LittleEndian.Uint32(raw),
		address: binary.LittleEndian.Uint64(raw[8:]),
		size:    uint32(min(size, math.MaxUint32)),
	}
	if index == elf.SHN_UNDEF || e.name == 0 || e.address == 0 {
		return
	}
	switch elf.ST_TYPE(raw[4]) {
	case elf.STT_FUNC, elf.STT_GNU_IFUNC:
		t.functions = append(t.functions, e)
	case elf.STT_OBJECT, elf.STT_COMMON:
		t.objects = append(t.objects, e)
	case elf.STT_NOTYPE:
		if int(index) < len(sections) && sections[index].Flags&elf.SHF_EXECINSTR != 0 {
			e.size = 0
			t.functions = append(t.functions, e)
		}
	}
}

// function returns the function that the address lies in. Only if sized is false, one whose
// size is unknown will do.
func (t *table) function(address uint64, sized bool) (Symbol, bool) {
	if sized {
		return t.covering(t.functions, address, true)
	}
	i := above(t.functions, address) - 1
	for range maxAliases {
		if i < 0 || address-t.functions[i].address > maxUnsized {
			break
		}
		e := t.functions[i]
		if e.size == 0 && t.sameSection(e.address, address) {
			// "$x", "$d" mark code and data on arm64; they name nothing.
			if name := t.bestName(t.functions, i); name != "" && name[0] != '$' {
				return Symbol{Name: name, Address: e.address, Function: true}, true
			}
		}
		i--
	}
	return Symbol{}, false
}

// object returns the data object that the address lies in.
func (t *table) object(address uint64) (Symbol, bool) {
	return t.covering(t.objects, address, false)
}

// covering returns the innermost entry whose size reaches the address.
func (t *table) covering(entries []entry, address uint64, function bool) (Symbol, bool) {
	last := above(entries, address) - 1
	for i := last; i >= 0 && last-i < maxAliases; i-- {
		e := entries[i]
		if address-e.address >= uint64(e.size) {
			continue
		}
		if name := t.bestName(entries, i); name != "" {
			return Symbol{Name: name, Address: e.address, Size: uint64(e.size), Function: function}, true
		}
	}
	return Symbol{}, false
}

// above returns the index of the first entry beyond the address.
func above(entries []entry, address uint64) int {
	return sort.Search(len(entries), func(i int) bool { return entries[i].address > address })
}

// sameSection says whether two addresses lie in one section of code.
func (t *table) sameSection(a, b uint64) bool {
	for _, r := range t.code {
		if r.low <= a && a < r.high {
			return b < r.high
		}
	}
	return false
}

// bestName returns the name of entry i or a better one that has the same address and size:
// malloc rather than __libc_malloc.
func (t *table) bestName(entries []entry, i int) string {
	best := ""
	for j := i; j >= 0 && i-j < maxAliases && entries[j].address == entries[i].address && entries[j].size == entries[i].size; j-- {
		if name := t.name(entries[j]); name != "" && (best == "" || betterName(name, best)) {
			best = name
		}
	}
	return best
}

// betterName says whether a is what a programmer would rather read than b, its alias.
func betterName(a, b string) bool {
	underscores := func(s string) int { return len(s) - len(strings.TrimLeft(s, "_")) }
	return cmp.Or(cmp.Compare(underscores(a), underscores(b)), cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) < 0
}

// name reads the entry's name from the file, without the version that some linkers add.
func (t *table) name(e entry) string {
	name := readString(t.names, int64(e.name), t.namesSize)
	if at := strings.IndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	return name
}

// readString reads a text that ends with a zero byte, in small pieces.
func readString(reader io.ReaderAt, offset, size int64) string {
	var text []byte
	for piece := int64(64); offset < size && len(text) < maxName; piece *= 4 {
		buffer := make([]byte, min(piece, size-offset))
		n, err := reader.ReadAt(buffer, offset)
		if end := bytes.IndexByte(buffer[:n], 0); end >= 0 {
			return string(append(text, buffer[:end]...))
		}
		text = append(text, buffer[:n]...)
		offset += int64(n)
		if err != nil || n == 0 {
			break
		}
	}
	return string(text[:min(len(text), maxName)])
}

// cost is the memory of the table in bytes.
func (t *table) cost() int64 { return int64(len(t.functions)+len(t.objects))*16 + t.held }
