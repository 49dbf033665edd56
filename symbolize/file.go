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

// maxDrops is how often the lines of a file are read again after they had to make room: two
// files too large for the memory would otherwise take turns without end.
const maxDrops = 8

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
	drops                int // how often lines had to be forgotten
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
	if f.lines != nil {
		f.drops++
	}
	f.lines, f.linesDone = nil, f.drops >= maxDrops
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
// when no segment loads it. Segments share pages of the file at their borders: code is
// preferred, and the segment proper to what the kernel maps around it.
func (f *File) Address(offset uint64) (uint64, bool) {
	for _, code := range []bool{true, false} {
		for _, pages := range []bool{false, true} {
			for _, p := range f.elf.Progs {
				if p.Type == elf.PT_LOAD && (p.Flags&elf.PF_X != 0) == code && holds(p, offset, pages) {
					return p.Vaddr - p.Off + offset, true
				}
			}
		}
	}
	return 0, false
}

// holds says whether the byte at a file offset belongs to the segment, or, with pages, to the
// whole pages that are mapped for it.
func holds(p *elf.Prog, offset uint64, pages bool) bool {
	start, end := p.Off, p.Off+p.Filesz
	if pages {
		start, end = start&^(pageSize-1), (end+pageSize-1)&^(pageSize-1)
	}
	return start <= offset && offset < end
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

// pageSize is the unit of mappings on this machine, in bytes.
var pageSize = uint64(os.Getpagesize())
