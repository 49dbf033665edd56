package symbolize

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// Limits of what is read to open an ELF file, in bytes.
const (
	maxSectionTable = 4 << 20 // 65 535 section headers of 64 bytes
	maxHeaders      = 8 << 20 // all headers and the section names together
	maxNote         = 64 << 10
	maxBuildID      = 64
)

// openELF reads the headers of a 64-bit ELF file. What debug/elf would trust is looked at
// first: a compressed section table of names, say, would unpack to any size.
func openELF(reader io.ReaderAt, size int64) (*elf.File, error) {
	checked, err := checkHeaders(reader, size)
	if err != nil {
		return nil, err
	}
	limited := &switchable{ReaderAt: &allowance{checked, maxHeaders}}
	var file *elf.File
	err = guard("ELF headers", func() (err error) {
		file, err = elf.NewFile(limited)
		return err
	})
	if err != nil {
		return nil, err
	}
	limited.ReaderAt = io.NewSectionReader(reader, 0, size)
	return file, nil
}

// switchable lets the reader behind the sections change once the headers are read.
type switchable struct{ io.ReaderAt }

// frozen serves the checked parts of a file from memory, so that the file cannot change
// between the check and the use of them.
type frozen struct {
	io.ReaderAt
	parts []part
}

type part struct {
	offset int64
	data   []byte
}

func (f *frozen) ReadAt(p []byte, offset int64) (int, error) {
	for _, have := range f.parts {
		if offset >= have.offset && offset-have.offset <= int64(len(have.data)-len(p)) {
			return copy(p, have.data[offset-have.offset:]), nil
		}
	}
	return f.ReaderAt.ReadAt(p, offset)
}

// checkHeaders reads the file header and the section table and refuses what would be
// costly to read on.
func checkHeaders(reader io.ReaderAt, size int64) (io.ReaderAt, error) {
	var header elf.Header64
	head := make([]byte, binary.Size(header))
	if size < int64(len(head)) {
		return nil, errors.New("too short for an ELF file")
	}
	if _, err := reader.ReadAt(head, 0); err != nil {
		return nil, fmt.Errorf("read the ELF header: %w", err)
	}
	if string(head[:4]) != elf.ELFMAG {
		return nil, errors.New("not an ELF file")
	}
	if elf.Class(head[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(head[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return nil, errors.New("not a 64-bit little-endian ELF file")
	}
	if _, err := binary.Decode(head, binary.LittleEndian, &header); err != nil {
		return nil, err
	}
	checked := &frozen{io.NewSectionReader(reader, 0, size), []part{{0, head}}}
	if header.Shoff == 0 {
		return checked, nil
	}
	table, err := readSectionTable(checked, header, size)
	if err != nil {
		return nil, err
	}
	checked.parts = append(checked.parts, part{int64(header.Shoff), table})
	return checked, nil
}

// readSectionTable returns the section headers after a look at the one of the names.
func readSectionTable(reader io.ReaderAt, header elf.Header64, size int64) ([]byte, error) {
	length := int64(header.Shnum) * int64(header.Shentsize)
	if length == 0 || header.Shentsize < uint16(binary.Size(elf.Section64{})) {
		return nil, errors.New("more sections than a program has")
	}
	if length > maxSectionTable || header.Shoff > uint64(size) || length > size-int64(header.Shoff) {
		return nil, fmt.Errorf("section table of %d bytes at %#x: %w", length, header.Shoff, errLimit)
	}
	table := make([]byte, length)
	if _, err := reader.ReadAt(table, int64(header.Shoff)); err != nil {
		return nil, fmt.Errorf("read the section table: %w", err)
	}
	if header.Shstrndx >= header.Shnum {
		return nil, errors.New("no section of section names")
	}
	var names elf.Section64
	at := int(header.Shstrndx) * int(header.Shentsize)
	if _, err := binary.Decode(table[at:], binary.LittleEndian, &names); err != nil {
		return nil, err
	}
	if names.Flags&uint64(elf.SHF_COMPRESSED) != 0 {
		return nil, errors.New("compressed section names")
	}
	return table, nil
}

// readBuildID returns the build id from the notes, in hexadecimal; "" without one.
func readBuildID(file *elf.File) string {
	for _, p := range file.Progs {
		if p.Type != elf.PT_NOTE || p.Filesz > maxNote {
			continue
		}
		data := make([]byte, p.Filesz)
		if _, err := p.ReadAt(data, 0); err != nil && err != io.EOF {
			continue
		}
		if id := noteBuildID(data, p.Align); id != "" {
			return id
		}
	}
	// Separate debug files keep the section although their segments hold nothing.
	section := file.Section(".note.gnu.build-id")
	if section == nil || section.Type == elf.SHT_NOBITS || section.FileSize > maxNote || section.Flags&elf.SHF_COMPRESSED != 0 {
		return ""
	}
	data := make([]byte, section.FileSize)
	if _, err := section.ReadAt(data, 0); err != nil && err != io.EOF {
		return ""
	}
	return noteBuildID(data, section.Addralign)
}

// noteBuildID looks through notes: three words (length of the name, of the contents, kind),
// then both, each padded to the alignment.
func noteBuildID(notes []byte, align uint64) string {
	if align != 8 {
		align = 4
	}
	const head, kindBuildID = 12, 3
	for len(notes) >= head {
		nameSize := uint64(binary.LittleEndian.Uint32(notes))
		dataSize := uint64(binary.LittleEndian.Uint32(notes[4:]))
		kind := binary.LittleEndian.Uint32(notes[8:])
		dataAt := (head + nameSize + align - 1) &^ (align - 1)
		next := (dataAt + dataSize + align - 1) &^ (align - 1)
		if dataAt+dataSize > uint64(len(notes)) {
			return ""
		}
		name := bytes.TrimRight(notes[head:head+nameSize], "\x00")
		if kind == kindBuildID && string(name) == "GNU" && dataSize > 1 && dataSize <= maxBuildID {
			return hex.EncodeToString(notes[dataAt : dataAt+dataSize])
		}
		notes = notes[min(next, uint64(len(notes))):]
	}
	return ""
}
