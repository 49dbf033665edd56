package symbolize

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// File is an ELF file whose symbols are looked up: a program, a library, the vdso. Nothing
// of it is read before it is needed, and then only the parts that are needed; every size
// that the file claims is bounded. A File is safe for use by several goroutines.
type File struct {
	elf     *elf.File
	reader  io.ReaderAt
	size    int64
	os      *os.File // nil where the bytes do not come from an open file
	closing []io.Closer
	buildID string
	path    string // as the process names it; for .gnu_debuglink
	find    debugFinder

	mu      sync.Mutex
	sources []*source  // of symbols, best first; nil before the first lookup
	debug   *File      // the separate debug file, once debugDone
	lines   *debugInfo // nil before the first lookup of a line

	debugDone, linesDone bool
}

// OpenFile opens the ELF file of this machine. A separate debug file is looked for where
// Debian puts it, below /usr/lib/debug.
func OpenFile(path string) (*File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("open the ELF file: %w", err)
	}
	return adopt(file, path, hostDebugFiles)
}

// NewFile reads the ELF file behind a reader; size is its length in bytes. Separate debug
// files are not looked for. The caller closes the reader after the File.
func NewFile(reader io.ReaderAt, size int64) (*File, error) {
	parsed, err := openELF(reader, size)
	if err != nil {
		return nil, err
	}
	f := &File{elf: parsed, reader: reader, size: size}
	f.buildID = readBuildID(parsed)
	return f, nil
}

// adopt makes a File of an open file, which it closes with the File or when it is no ELF file.
func adopt(file *os.File, path string, find debugFinder) (*File, error) {
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	f, err := NewFile(file, info.Size())
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.os, f.path, f.find = file, path, find
	f.closing = append(f.closing, file)
	return f, nil
}

// Close releases what the File holds.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop()
	var errs []error
	for _, c := range f.closing {
		errs = append(errs, c.Close())
	}
	f.closing = nil
	return errors.Join(errs...)
}

// drop forgets what can be read again. The lock is held.
func (f *File) drop() {
	f.sources = nil
	if f.lines != nil {
		f.lines.close()
	}
	if f.debug != nil {
		f.debug.Close()
	}
	f.debug, f.debugDone = nil, false
	f.lines, f.linesDone = nil, false
}

// cost returns roughly how many bytes of memory the File holds. The lock is held.
func (f *File) cost() int64 {
	var total int64
	for _, s := range f.sources {
		total += s.cost()
	}
	if f.lines != nil {
		total += f.lines.cost()
	}
	if f.debug != nil {
		f.debug.mu.Lock()
		total += f.debug.cost()
		f.debug.mu.Unlock()
	}
	return total
}

// BuildID returns the linker's identification of the file in hexadecimal; "" without one.
func (f *File) BuildID() string { return f.buildID }

// Header returns the ELF header: class, machine, type, entry.
func (f *File) Header() elf.FileHeader { return f.elf.FileHeader }

// Segments returns the program headers.
func (f *File) Segments() []elf.ProgHeader {
	headers := make([]elf.ProgHeader, len(f.elf.Progs))
	for i, p := range f.elf.Progs {
		headers[i] = p.ProgHeader
	}
	return headers
}

// Section returns the first section of the name, nil without one. Its sizes are what the
// file claims: read it through SectionData.
func (f *File) Section(name string) *elf.Section { return f.elf.Section(name) }

// SectionData returns the contents of a section, decompressed, or an error when there is
// no such section, or it is larger than limit bytes.
func (f *File) SectionData(name string, limit uint64) ([]byte, error) {
	section := f.elf.Section(name)
	if section == nil || section.Type == elf.SHT_NOBITS {
		return nil, fmt.Errorf("no section %s", name)
	}
	if section.Size > limit || section.FileSize > uint64(f.size) {
		return nil, fmt.Errorf("section %s: %d bytes: %w", name, section.Size, errLimit)
	}
	var data []byte
	err := guard("section "+name, func() (err error) {
		data, err = section.Data()
		return err
	})
	return data, err
}

// Address returns the virtual address that the file gives to the byte at a file offset; false
// when no segment loads it. Where two do, one that is executable is preferred.
func (f *File) Address(offset uint64) (uint64, bool) {
	address, found := uint64(0), false
	for _, p := range f.elf.Progs {
		if p.Type != elf.PT_LOAD || offset < pageStart(p.Off) || offset-pageStart(p.Off) >= mappedSize(p) {
			continue
		}
		address, found = p.Vaddr-p.Off+offset, true
		if p.Flags&elf.PF_X != 0 {
			break
		}
	}
	return address, found
}

// Offset returns where in the file the byte at a virtual address lies; false when it has no
// byte there.
func (f *File) Offset(address uint64) (uint64, bool) {
	for _, p := range f.elf.Progs {
		if p.Type == elf.PT_LOAD && address >= p.Vaddr && address-p.Vaddr < p.Filesz {
			return address - p.Vaddr + p.Off, true
		}
	}
	return 0, false
}

// loaded says whether a virtual address belongs to the file's image in memory, .bss included.
func (f *File) loaded(address uint64) bool {
	for _, p := range f.elf.Progs {
		if p.Type == elf.PT_LOAD && address >= p.Vaddr && address-p.Vaddr < p.Memsz {
			return true
		}
	}
	return false
}

const pageSize = 4096

func pageStart(offset uint64) uint64 { return offset &^ (pageSize - 1) }

// mappedSize is how many bytes of the file the kernel maps for a segment: whole pages.
func mappedSize(p *elf.Prog) uint64 {
	return (p.Off - pageStart(p.Off) + p.Filesz + pageSize - 1) &^ (pageSize - 1)
}
