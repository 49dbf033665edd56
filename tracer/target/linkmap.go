package target

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// maxObjects bounds the walk along the dynamic linker's list, which the target can forge.
const maxObjects = 8192

// loaded is one entry of the dynamic linker's list.
type loaded struct {
	bias    uint64 // what was added to the addresses in the file
	dynamic uint64 // address of its dynamic section
}

// errNoLinkMap: the process has no such list (a static program), or not yet.
var errNoLinkMap = errors.New("no list of loaded objects")

// auxiliary vector entries (linux/auxvec.h)
const (
	auxProgramHeaders     = 3
	auxProgramHeaderCount = 5
	auxBase               = 7 // where the dynamic linker lies
	auxEntry              = 9
)

// auxValue returns an entry of the auxiliary vector, 0 when it is missing.
func auxValue(auxv []byte, kind uint64) uint64 {
	for at := 0; at+16 <= len(auxv); at += 16 {
		if binary.LittleEndian.Uint64(auxv[at:]) == kind {
			return binary.LittleEndian.Uint64(auxv[at+8:])
		}
	}
	return 0
}

// linkMap reads the dynamic linker's list of loaded objects (struct link_map of link.h) in
// its own order: the executable, preloaded libraries, then dependencies breadth first. That
// is the order in which symbols are looked up; /proc/PID/maps does not tell it.
func (t *Target) linkMap() ([]loaded, error) {
	auxv, err := t.read("auxv", 1<<16)
	if err != nil {
		return nil, t.readRefusal(err)
	}
	memory, err := t.openProc("mem", os.O_RDONLY)
	if err != nil {
		return nil, t.readRefusal(err)
	}
	defer memory.Close()
	debug, err := debugAddress(memory, auxValue(auxv, auxProgramHeaders), auxValue(auxv, auxProgramHeaderCount))
	if errors.Is(err, errNoLinkMap) {
		debug, err = t.debugOfLinker(auxValue(auxv, auxBase), auxValue(auxv, auxEntry))
	}
	if err != nil {
		return nil, err
	}
	return walkLinkMap(memory, debug, t.Stopped)
}

// debugOfLinker finds struct r_debug as the dynamic linker exports it: for executables
// without DT_DEBUG, and for programs that were started by naming the dynamic linker, which is
// the executable then.
func (t *Target) debugOfLinker(base, entry uint64) (uint64, error) {
	for _, m := range t.Mappings {
		inBase := base != 0 && m.Start-m.Offset <= base && base < m.End
		if m.Inode == 0 || !inBase && (entry < m.Start || entry >= m.End) {
			continue
		}
		o, err := t.openObject(m)
		if err != nil {
			continue
		}
		err = o.find(map[string]bool{"_r_debug": true}, false)
		found, ok := o.symbols["_r_debug"]
		bias, known := o.bias()
		o.Close()
		if err == nil && ok && known {
			return bias + found.address, nil
		}
	}
	return 0, errNoLinkMap
}

// bias is what the process adds to the addresses of a file, by its first executable mapping.
func (o *object) bias() (uint64, bool) {
	address, ok := o.addressOf(o.mapping.Offset)
	return o.mapping.Start - address, ok
}

// walkLinkMap follows the list from struct r_debug: version, first entry, breakpoint, state.
// An entry begins with the bias, the name, the dynamic section and the next entry. While the
// dynamic linker is at work the list may be half made, unless the process is held in it.
func walkLinkMap(memory *os.File, debug uint64, held bool) ([]loaded, error) {
	var head [4]uint64
	if err := readWords(memory, debug, head[:]); err != nil {
		return nil, err
	}
	if uint32(head[3]) != 0 && !held { // 0 is RT_CONSISTENT
		return nil, fmt.Errorf("the dynamic linker is at work: %w", errChanged)
	}
	var objects []loaded
	for entry := head[1]; entry != 0; {
		var words [4]uint64
		if err := readWords(memory, entry, words[:]); err != nil {
			return nil, err
		}
		if len(objects) == maxObjects {
			return nil, fmt.Errorf("more than %d loaded objects", maxObjects)
		}
		objects = append(objects, loaded{bias: words[0], dynamic: words[2]})
		entry = words[3]
	}
	if len(objects) == 0 {
		return nil, errNoLinkMap
	}
	return objects, nil
}

// debugAddress finds DT_DEBUG, where the dynamic linker leaves the address of struct
// r_debug, in the executable's dynamic section.
func debugAddress(memory *os.File, headers, count uint64) (uint64, error) {
	dynamic, size, err := dynamicSection(memory, headers, count)
	if err != nil {
		return 0, err
	}
	entries := make([]uint64, size/8)
	if err := readWords(memory, dynamic, entries); err != nil {
		return 0, err
	}
	for i := 0; i+1 < len(entries); i += 2 {
		switch elf.DynTag(entries[i]) {
		case elf.DT_NULL:
			return 0, errNoLinkMap
		case elf.DT_DEBUG:
			if entries[i+1] != 0 {
				return entries[i+1], nil
			}
			return 0, errNoLinkMap
		}
	}
	return 0, errNoLinkMap
}

// dynamicSection finds the executable's dynamic section in memory by its program headers.
func dynamicSection(memory *os.File, headers, count uint64) (address, size uint64, err error) {
	const headerSize, maxHeaders, maxSize = 56, 512, 1 << 16
	if headers == 0 || count == 0 || count > maxHeaders {
		return 0, 0, errNoLinkMap
	}
	raw := make([]byte, count*headerSize)
	if err := readMemory(memory, headers, raw); err != nil {
		return 0, 0, err
	}
	table := make([]elf.Prog64, count)
	if err := binary.Read(bytes.NewReader(raw), binary.LittleEndian, table); err != nil {
		return 0, 0, err
	}
	bias := programBias(table, headers)
	for _, header := range table {
		if elf.ProgType(header.Type) == elf.PT_DYNAMIC {
			return bias + header.Vaddr, min(header.Memsz, maxSize), nil
		}
	}
	return 0, 0, errNoLinkMap
}

// programBias is what was added to the executable's addresses, given where its program
// headers lie. Static programs and the dynamic linker do not say where they should lie
// (PT_PHDR), but the headers follow the file's own header, at the start of the first segment.
func programBias(table []elf.Prog64, headers uint64) uint64 {
	const fileHeaderSize = 64
	for _, header := range table {
		if elf.ProgType(header.Type) == elf.PT_PHDR {
			return headers - header.Vaddr
		}
	}
	for _, header := range table {
		if elf.ProgType(header.Type) == elf.PT_LOAD && header.Off == 0 {
			return headers - fileHeaderSize - header.Vaddr
		}
	}
	return 0
}

// readWords reads 64-bit words of the process's memory.
func readWords(memory *os.File, at uint64, words []uint64) error {
	raw := make([]byte, 8*len(words))
	if err := readMemory(memory, at, raw); err != nil {
		return err
	}
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	return nil
}

// readMemory reads the process's memory; what is not mapped counts as a change under the
// reader, which makes Open try again.
func readMemory(memory *os.File, at uint64, into []byte) error {
	if at > 1<<63-1 {
		return fmt.Errorf("address %#x in the list of loaded objects: %w", at, errChanged)
	}
	if n, err := memory.ReadAt(into, int64(at)); n < len(into) {
		if errors.Is(err, os.ErrPermission) {
			return err
		}
		return fmt.Errorf("read memory at %#x: %v: %w", at, err, errChanged)
	}
	return nil
}
