package symbolize

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// Marker is a static probe point of SystemTap's kind (USDT): a no-op that the program passes.
type Marker struct {
	Provider, Name string
	Offset         uint64 // of the instruction, in the file
	// Semaphore is where in the file the counter lies that is above zero while somebody looks
	// at the marker; 0 = there is none.
	Semaphore uint64
}

// Facts of the notes that hold markers (SystemTap's wiki, "UserSpaceProbeImplementation").
const (
	markerSection = ".note.stapsdt"
	markerBase    = ".stapsdt.base" // moves with the code when a file is prelinked
	markerOwner   = "stapsdt\x00"
	markerType    = 3
	markerLimit   = 16 << 20
	noteHeader    = 12
	noteAlignment = 4
	markerWords   = 3 // the instruction, the base, the semaphore
)

// Markers lists the file's markers in the order of its notes; none where it has no notes.
func (f *File) Markers() ([]Marker, error) {
	if f.Section(markerSection) == nil {
		return nil, nil
	}
	data, err := f.SectionData(markerSection, markerLimit)
	if err != nil {
		return nil, fmt.Errorf("read the markers: %w", err)
	}
	var base uint64
	if section := f.Section(markerBase); section != nil {
		base = section.Addr
	}
	return f.markersIn(data, f.Header().ByteOrder, base), nil
}

// markersIn reads the notes; base is where the section lies that moves with the code.
func (f *File) markersIn(data []byte, order binary.ByteOrder, base uint64) (markers []Marker) {
	for len(data) >= noteHeader {
		owner, size, kind := order.Uint32(data), order.Uint32(data[4:]), order.Uint32(data[8:])
		data = data[noteHeader:]
		nameEnd, end := aligned(owner), aligned(owner)+aligned(size)
		if end > uint64(len(data)) || uint64(size) > end-nameEnd {
			break // cut off: what came before stands
		}
		if kind == markerType && string(data[:owner]) == markerOwner {
			if marker, ok := f.marker(data[nameEnd:nameEnd+uint64(size)], order, base); ok {
				markers = append(markers, marker)
			}
		}
		data = data[end:]
	}
	return markers
}

// aligned is the space that so many bytes take in a note.
func aligned(size uint32) uint64 { return (uint64(size) + noteAlignment - 1) &^ (noteAlignment - 1) }

// marker reads one note's description.
func (f *File) marker(description []byte, order binary.ByteOrder, base uint64) (Marker, bool) {
	const word = 8
	if len(description) < markerWords*word {
		return Marker{}, false
	}
	address, was, semaphore := order.Uint64(description), order.Uint64(description[word:]), order.Uint64(description[2*word:])
	if base != 0 && was != 0 {
		address += base - was
	}
	texts := bytes.SplitN(description[markerWords*word:], []byte{0}, markerWords)
	offset, loaded := f.Offset(address)
	if len(texts) < markerWords || !loaded {
		return Marker{}, false
	}
	m := Marker{Provider: string(texts[0]), Name: string(texts[1]), Offset: offset}
	if semaphore != 0 {
		m.Semaphore = f.placeOf(semaphore)
	}
	return m, true
}

// placeOf is where a virtual address lies by the file's offsets, be it in memory that the
// file only announces; 0 where nothing is loaded.
func (f *File) placeOf(address uint64) uint64 {
	for _, p := range f.Segments() {
		if p.Type == elf.PT_LOAD && address >= p.Vaddr && address-p.Vaddr < p.Memsz {
			return address - p.Vaddr + p.Off
		}
	}
	return 0
}
