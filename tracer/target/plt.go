package target

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
)

// throughPLT follows a jump to an entry of the procedure linkage table to the function of
// this file that it leads to. Other offsets, and calls that leave the file, are returned as
// they are.
func (o *object) throughPLT(offset uint64) uint64 {
	slot, ok := o.linkageSlot(offset)
	if !ok {
		return offset
	}
	for _, section := range o.elf.Sections {
		if section.Type != elf.SHT_RELA || int(section.Link) >= len(o.elf.Sections) {
			continue
		}
		if index, found := relocated(section, slot); found {
			if to, ok := o.definedAt(o.elf.Sections[section.Link], index); ok {
				return to
			}
		}
	}
	return offset
}

// linkageSlot decodes `jmp *slot(%rip)`, after endbr64 and with a bnd prefix if they are
// there, and returns the slot's address in the file's own numbering.
func (o *object) linkageSlot(offset uint64) (uint64, bool) {
	const entrySize = 16
	address, ok := o.addressOf(offset)
	if !ok || o.elf.Machine != elf.EM_X86_64 {
		return 0, false
	}
	code := o.code(offset, entrySize)
	for _, skip := range []string{"\xf3\x0f\x1e\xfa", "\xf2"} {
		if len(code) > len(skip) && string(code[:len(skip)]) == skip {
			code = code[len(skip):]
			address += uint64(len(skip))
		}
	}
	if len(code) < 6 || code[0] != 0xff || code[1] != 0x25 {
		return 0, false
	}
	return address + 6 + uint64(int64(int32(binary.LittleEndian.Uint32(code[2:])))), true
}

// relocated searches a table of relocations (Elf64_Rela: offset, info, addend) for the one
// that fills a slot and returns the index of its symbol.
func relocated(section *elf.Section, slot uint64) (uint64, bool) {
	const size = 24
	table := io.NewSectionReader(section, 0, int64(min(section.Size, maxStrings)))
	buffer := make([]byte, 4096*size)
	for {
		n, err := io.ReadFull(table, buffer)
		for i := 0; i+size <= n; i += size {
			if binary.LittleEndian.Uint64(buffer[i:]) == slot {
				return binary.LittleEndian.Uint64(buffer[i+8:]) >> 32, true
			}
		}
		if err != nil && !errors.Is(err, io.EOF) || n < len(buffer) {
			return 0, false
		}
	}
}

// definedAt returns the offset of the function that a symbol of the table defines.
func (o *object) definedAt(section *elf.Section, index uint64) (uint64, bool) {
	raw := make([]byte, symbolSize)
	if index == 0 || index >= maxSymbols {
		return 0, false
	}
	if _, err := section.ReadAt(raw, int64(index*symbolSize)); err != nil {
		return 0, false
	}
	if elf.SectionIndex(binary.LittleEndian.Uint16(raw[6:])) == elf.SHN_UNDEF {
		return 0, false
	}
	return o.fileOffset(binary.LittleEndian.Uint64(raw[8:]))
}

// addressOf is the reverse of fileOffset; a segment is mapped from the start of its page.
func (o *object) addressOf(offset uint64) (uint64, bool) {
	for _, p := range o.elf.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && offset >= p.Off&^(pageSize-1) && offset < p.Off+p.Filesz {
			return p.Vaddr + (offset - p.Off), true
		}
	}
	return 0, false
}

// pageSize is the smallest page: segments are aligned to at least that.
const pageSize = 4096
