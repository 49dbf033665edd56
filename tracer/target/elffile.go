package target

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	// maxStrings and maxSymbols bound a symbol table; larger ones are not searched.
	maxStrings = 1 << 30
	maxSymbols = 1 << 26
	symbolSize = 24 // bytes of an Elf64_Sym
	chunkSize  = 1 << 20
)

// object is a file with code that the process has mapped.
type object struct {
	mapping  Mapping // its first executable mapping
	file     fileReader
	elf      *elf.File
	symbols  map[string]symbol // those that were asked for
	imported map[string]bool
}

// fileReader is what is needed of an open file.
type fileReader interface {
	io.ReaderAt
	io.Closer
}

// symbol is a function that the file defines.
type symbol struct {
	address uint64 // in the file's own numbering
	size    uint64
}

// openObject reads the headers of a mapped file.
func (t *Target) openObject(m Mapping) (*object, error) {
	file, err := t.OpenMapped(m)
	if err != nil {
		return nil, err
	}
	return newObject(m, file)
}

// newObject takes the file over.
func newObject(m Mapping, file fileReader) (*object, error) {
	parsed, err := parseELF(file)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("read %s: %w", m.Path, err)
	}
	return &object{mapping: m, file: file, elf: parsed}, nil
}

// Inspect finds the allocator in a file that no process has mapped: its entries have no
// addresses then. It takes the file over and closes it.
func Inspect(file *os.File) (Allocator, error) {
	return inspect(file, file.Name())
}

func inspect(file fileReader, name string) (Allocator, error) {
	o, err := newObject(Mapping{Path: name}, file)
	if err != nil {
		return Allocator{}, err
	}
	defer o.Close()
	if err := o.find(wanted, true); err != nil {
		return Allocator{}, err
	}
	sign, known := classify(o)
	if !known {
		return Allocator{}, refuse(supported, "%s holds no allocator that is known", name)
	}
	return makeAllocator(o, sign, factsOf(o).static, nil), nil
}

// parseELF reads the headers. The standard library is not hardened against forged files, so
// a panic there becomes an error here.
func parseELF(r io.ReaderAt) (parsed *elf.File, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			parsed, err = nil, fmt.Errorf("malformed ELF file: %v", failure)
		}
	}()
	parsed, err = elf.NewFile(r)
	if err == nil && parsed.Class != elf.ELFCLASS64 {
		return nil, errors.New("not a 64-bit ELF file")
	}
	return parsed, err
}

// Close closes the file.
func (o *object) Close() error { return o.file.Close() }

// find looks the names up in the dynamic symbol table, and with whole in the full one too,
// and keeps what it found.
func (o *object) find(names map[string]bool, whole bool) error {
	o.symbols, o.imported = map[string]symbol{}, map[string]bool{}
	types := []elf.SectionType{elf.SHT_DYNSYM}
	if whole {
		types = append(types, elf.SHT_SYMTAB)
	}
	for _, kind := range types {
		for _, section := range o.elf.Sections {
			if section.Type != kind {
				continue
			}
			if err := o.findIn(section, names); err != nil {
				return fmt.Errorf("symbols of %s: %w", o.mapping.Path, err)
			}
		}
	}
	return nil
}

// findIn searches one symbol table. It first finds the wanted names in the string table,
// then the symbols that refer to those places: a table of any size is read once, in pieces.
func (o *object) findIn(section *elf.Section, names map[string]bool) (err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("malformed symbol table: %v", failure)
		}
	}()
	if int(section.Link) >= len(o.elf.Sections) || section.Flags&elf.SHF_COMPRESSED != 0 {
		return errors.New("no string table")
	}
	places, err := namePlaces(o.elf.Sections[section.Link], names)
	if err != nil || len(places) == 0 {
		return err
	}
	if section.Size/symbolSize > maxSymbols {
		return fmt.Errorf("more than %d symbols", maxSymbols)
	}
	buffer := make([]byte, min(section.Size, chunkSize/symbolSize*symbolSize))
	for at := uint64(0); at < section.Size; at += uint64(len(buffer)) {
		n, readErr := section.ReadAt(buffer, int64(at))
		for i := 0; i+symbolSize <= n; i += symbolSize {
			raw := buffer[i : i+symbolSize]
			if name, wanted := places[o.elf.ByteOrder.Uint32(raw)]; wanted {
				o.keep(name, raw)
			}
		}
		if readErr != nil && !errors.Is(readErr, io.EOF) {
			return readErr
		}
		if n == 0 {
			break
		}
	}
	return nil
}

// keep records an Elf64_Sym: name, info, other, section, value, size. The first definition
// of a name wins; an indirect function is its resolver, which is not the function.
func (o *object) keep(name string, raw []byte) {
	section := elf.SectionIndex(o.elf.ByteOrder.Uint16(raw[6:]))
	kind := elf.ST_TYPE(raw[4])
	if section == elf.SHN_UNDEF {
		o.imported[name] = true
		return
	}
	if _, known := o.symbols[name]; known || kind == elf.STT_GNU_IFUNC || kind == elf.STT_FILE || kind == elf.STT_SECTION {
		return
	}
	o.symbols[name] = symbol{address: o.elf.ByteOrder.Uint64(raw[8:]), size: o.elf.ByteOrder.Uint64(raw[16:])}
}

// namePlaces finds where in a string table the names stand. Linkers let a name share the
// tail of a longer one, so it may begin anywhere.
func namePlaces(section *elf.Section, names map[string]bool) (map[uint32]string, error) {
	if section.Size > maxStrings || section.Flags&elf.SHF_COMPRESSED != 0 {
		return nil, fmt.Errorf("string table of %d bytes", section.Size)
	}
	tails, longest := map[[tailSize]byte][]string{}, 0
	for name := range names {
		var tail [tailSize]byte
		copy(tail[:], name[len(name)-tailSize:])
		tails[tail] = append(tails[tail], name)
		longest = max(longest, len(name))
	}
	places := map[uint32]string{}
	buffer := make([]byte, min(section.Size, chunkSize+uint64(longest)+1))
	for at := uint64(0); at < section.Size; at += chunkSize {
		n, err := section.ReadAt(buffer, int64(at))
		findTails(buffer[:n], tails, func(place int, name string) { places[uint32(at)+uint32(place)] = name })
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if n < len(buffer) {
			break
		}
	}
	return places, nil
}

// tailSize is how many of a name's last bytes are looked up before it is compared; no wanted
// name is shorter.
const tailSize = 4

// findTails reports every wanted name that ends some string of the table.
func findTails(table []byte, tails map[[tailSize]byte][]string, report func(place int, name string)) {
	for start := 0; start < len(table); {
		length := bytes.IndexByte(table[start:], 0)
		if length < 0 {
			return
		}
		word := table[start : start+length]
		if length >= tailSize {
			for _, name := range tails[[tailSize]byte(word[length-tailSize:])] {
				if bytes.HasSuffix(word, []byte(name)) {
					report(start+length-len(name), name)
				}
			}
		}
		start += length + 1
	}
}

// fileOffset turns an address in the file's own numbering into an offset in the file; false
// when it lies in no executable segment.
func (o *object) fileOffset(address uint64) (uint64, bool) {
	for _, p := range o.elf.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && address >= p.Vaddr && address-p.Vaddr < p.Filesz {
			return p.Off + (address - p.Vaddr), true
		}
	}
	return 0, false
}

// code reads up to size bytes of the file's code at an offset.
func (o *object) code(offset, size uint64) []byte {
	code := make([]byte, size)
	n, _ := o.file.ReadAt(code, int64(offset))
	return code[:n]
}

// dynamicStrings returns the values of a tag of the dynamic section that names strings,
// such as DT_NEEDED; nothing when there are none.
func (o *object) dynamicStrings(tag elf.DynTag) (values []string) {
	defer func() {
		if recover() != nil {
			values = nil
		}
	}()
	for _, section := range o.elf.Sections {
		// What is compressed could grow without bound.
		names := section.Type == elf.SHT_DYNAMIC || section.Type == elf.SHT_STRTAB
		if names && (section.Flags&elf.SHF_COMPRESSED != 0 || section.Size > maxStrings) {
			return nil
		}
	}
	values, _ = o.elf.DynString(tag)
	return values
}
