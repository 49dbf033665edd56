package unwind

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// segment is code that the file's loader maps.
type segment struct {
	address uint64
	offset  uint64 // in the file
	size    uint64 // bytes in the file
}

// image is what a table is made of.
type image struct {
	code   []segment
	frames section
}

// newImage finds code and call frame information in a file.
func newImage(f *elf.File, file io.ReaderAt, size int64) (*image, error) {
	i := &image{frames: section{order: f.ByteOrder}}
	if err := i.setMachine(f); err != nil {
		return nil, err
	}
	if err := i.findCode(f, uint64(size)); err != nil {
		return nil, err
	}
	return i, i.findFrames(f, file, uint64(size))
}

// setMachine chooses the processor.
func (i *image) setMachine(f *elf.File) error {
	for _, m := range machines {
		if m.elf == f.Machine && f.Class == elf.ELFCLASS64 && f.ByteOrder == binary.LittleEndian {
			i.frames.machine = m
			return nil
		}
	}
	return fmt.Errorf("no unwind tables for %v, %v", f.Machine, f.Class)
}

// findCode lists the executable segments, as far as the file holds them.
func (i *image) findCode(f *elf.File, size uint64) error {
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_X == 0 || p.Off >= size {
			continue
		}
		s := segment{address: p.Vaddr, offset: p.Off, size: min(p.Filesz, size-p.Off)}
		if s.size > 0 && s.address+s.size > s.address {
			i.code = append(i.code, s)
		}
	}
	if len(i.code) == 0 {
		return errors.New("the file has no code")
	}
	if first, end := i.span(); end-first > maxSpan {
		return fmt.Errorf("code over %d bytes of file", end-first)
	}
	return nil
}

// span returns the places of the first byte of code and of the end of the last.
func (i *image) span() (first, end uint64) {
	first = i.code[0].offset
	for _, s := range i.code {
		first, end = min(first, s.offset), max(end, s.offset+s.size)
	}
	return first, end
}

// findFrames reads .eh_frame.
func (i *image) findFrames(f *elf.File, file io.ReaderAt, size uint64) error {
	address, offset, length, err := framesSection(f)
	if err != nil {
		address, offset, length, err = framesByHeader(f)
	}
	if err != nil {
		return err
	}
	if offset >= size {
		return fmt.Errorf(".eh_frame lies behind the end of the file: %w", ErrNoFrames)
	}
	length = min(length, size-offset)
	if length > maxSection {
		return fmt.Errorf(".eh_frame has %d bytes, more than %d", length, maxSection)
	}
	i.frames.address = address
	i.frames.data = make([]byte, length)
	if _, err := file.ReadAt(i.frames.data, int64(offset)); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read .eh_frame: %w", err)
	}
	return nil
}

// framesSection finds .eh_frame by the section headers.
func framesSection(f *elf.File) (address, offset, length uint64, err error) {
	s := f.Section(".eh_frame")
	if s == nil || s.Type == elf.SHT_NOBITS || s.Size == 0 || s.Flags&elf.SHF_COMPRESSED != 0 {
		return 0, 0, 0, ErrNoFrames
	}
	return s.Addr, s.Offset, s.FileSize, nil
}

// framesByHeader finds .eh_frame by the segment of .eh_frame_hdr, whose fourth byte on holds
// a pointer to it. It then ends with its segment at the latest; a terminator or garbage
// behind its end yields no functions in the code.
func framesByHeader(f *elf.File) (address, offset, length uint64, err error) {
	const headerBytes = 4
	for _, p := range f.Progs {
		if p.Type != elf.PT_GNU_EH_FRAME {
			continue
		}
		data := make([]byte, headerBytes+leb128Bytes)
		n, err := p.ReadAt(data, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, 0, fmt.Errorf("read .eh_frame_hdr: %w", err)
		}
		r := reader{data: data[:n], order: f.ByteOrder}
		r.u8()
		encoding := r.u8()
		r.u16()
		pointer := r.pointer(encoding, p.Vaddr)
		if r.failed || encoding == encodingOmit {
			break
		}
		for _, load := range f.Progs {
			if load.Type == elf.PT_LOAD && pointer >= load.Vaddr && pointer-load.Vaddr < load.Filesz {
				within := pointer - load.Vaddr
				return pointer, load.Off + within, load.Filesz - within, nil
			}
		}
	}
	return 0, 0, 0, ErrNoFrames
}
