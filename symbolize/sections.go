package symbolize

import (
	"debug/elf"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Limits of debug sections, in bytes. What the file holds uncompressed is mapped into memory
// and costs only the pages that are touched; the rest has to be unpacked into memory.
const (
	maxMappedSection   = 2 << 30
	maxUnpackedSection = 64 << 20
	maxUnpacked        = 128 << 20 // all sections of a file together
)

// sectionBytes are the contents of a section in memory.
type sectionBytes struct {
	data   []byte
	mapped []byte // the whole pages of data where it shows the file; nil where it is unpacked
}

// debugSection makes the contents of a section accessible; empty when the file has none.
// The memory is a private copy: writing to it does not reach the file.
func (f *File) debugSection(name string) (sectionBytes, error) {
	section := f.elf.Section(name)
	if section == nil || section.Type == elf.SHT_NOBITS || section.Size == 0 {
		return sectionBytes{}, nil
	}
	if f.os == nil || section.Flags&elf.SHF_COMPRESSED != 0 {
		data, err := f.SectionData(name, maxUnpackedSection)
		return sectionBytes{data: data}, err
	}
	if section.FileSize > maxMappedSection || section.Offset > uint64(f.size) ||
		section.FileSize > uint64(f.size)-section.Offset {
		return sectionBytes{}, fmt.Errorf("section %s: %d bytes: %w", name, section.FileSize, errLimit)
	}
	page := uint64(os.Getpagesize())
	start := section.Offset &^ (page - 1)
	connection, err := f.os.SyscallConn()
	if err != nil {
		return sectionBytes{}, err
	}
	var mapped []byte
	var mapErr error
	err = connection.Control(func(fd uintptr) {
		mapped, mapErr = unix.Mmap(int(fd), int64(start), int(section.Offset-start+section.FileSize),
			unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	})
	if err == nil {
		err = mapErr
	}
	if err != nil {
		return sectionBytes{}, fmt.Errorf("map section %s: %w", name, err)
	}
	// Read-ahead would read the whole section for a few scattered units.
	_ = unix.Madvise(mapped, unix.MADV_RANDOM)
	return sectionBytes{data: mapped[section.Offset-start:], mapped: mapped}, nil
}

// close gives the memory back.
func (s *sectionBytes) close() {
	if s.mapped != nil {
		_ = unix.Munmap(s.mapped)
	}
	*s = sectionBytes{}
}

// release lets the kernel take back the pages that were touched; they are read again when
// they are touched again. What was written to them is lost.
func (s *sectionBytes) release() {
	if s.mapped != nil {
		_ = unix.Madvise(s.mapped, unix.MADV_DONTNEED)
	}
}

// cost is the memory that the section takes for itself, in bytes.
func (s *sectionBytes) cost() int64 {
	if s.mapped != nil {
		return 0
	}
	return int64(len(s.data))
}
