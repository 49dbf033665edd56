package heap

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Location is where glibc keeps its state in one process, and how sure that is.
type Location struct {
	MainArena uint64 // address of main_arena
	Params    uint64 // address of mp_
	Library   string // the mapped file, as the target sees it
	Version   string // "2.36"; empty when the file carries none
	Table     string // the layout used, in words
	Known     bool   // a table was made for this very version
	Static    bool   // glibc is linked into the program
	Method    string // "symbols" or "invariants"
}

// maxArenas bounds the list of arenas: glibc makes at most 8 for each core unless told otherwise.
const maxArenas = 1 << 14

// found is a Location with what is needed to read there.
type found struct {
	Location
	layout layout
}

// locate finds main_arena and mp_ in the library's data: where the symbols say, when there
// are symbols, else by their shape. Both are believed only when every invariant holds.
func locate(memory Memory, lib *library, symbols map[string]uint64, page, heapStart uint64) (found, error) {
	rows, known := layoutsFor(lib.minor)
	if rows == nil {
		return found{}, fmt.Errorf("glibc %s is older than every layout table (2.%d and later): add one to tracer/heap/layout.go", lib.version, minorOldest)
	}
	data, err := readSpans(memory, lib.data)
	if err != nil {
		return found{}, err
	}
	for _, row := range rows {
		s := search{memory: memory, row: row, page: page, heapStart: heapStart, strict: !known}
		at := Location{Library: lib.path, Version: lib.version, Known: known, Static: lib.static, Table: row.describe(lib.version, known)}
		at.MainArena, at.Params, at.Method = symbols["main_arena"], symbols["mp_"], "symbols"
		if at.MainArena != 0 && at.Params != 0 && s.accepts(at.MainArena, at.Params) {
			return found{at, row}, nil
		}
		at.Method = "invariants"
		if at.MainArena, at.Params = s.scan(data); at.MainArena != 0 {
			return found{at, row}, nil
		}
	}
	return found{}, notFound(lib, known)
}

// notFound says what the reader of the message can do about it.
func notFound(lib *library, known bool) error {
	switch {
	case lib.static:
		return fmt.Errorf("%w: the program %s is linked statically and nothing in its data looks like glibc's main arena", ErrNotGlibc, lib.path)
	case known:
		return fmt.Errorf("main_arena was not found in the data of %s (glibc %s): its lists are corrupt, or this build differs from the upstream layout", lib.path, lib.version)
	}
	return fmt.Errorf("no layout table fits %s (glibc %s): add one to tracer/heap/layout.go, CONTRIBUTING tells how", lib.path, lib.version)
}

// block is a copy of a piece of the target's data.
type block struct {
	start uint64
	bytes []byte
}

const maxDataBytes = 64 << 20

func readSpans(memory Memory, spans []span) ([]block, error) {
	var blocks []block
	for _, s := range spans {
		if s.end-s.start > maxDataBytes {
			s.end = s.start + maxDataBytes
		}
		b := block{s.start, make([]byte, s.end-s.start)}
		if err := memory.Read(b.start, b.bytes); err != nil {
			if errors.Is(err, ErrGone) {
				return nil, err
			}
			continue // a page of it may be gone; the state, if it lies there, is then not found
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// search looks for glibc's state by the invariants of one layout.
type search struct {
	memory    Memory
	row       layout
	page      uint64
	heapStart uint64
	strict    bool // the version is not known: ask for more signs
}

// scan tries every aligned address of the data.
func (s search) scan(data []block) (mainArena, params uint64) {
	for _, b := range data {
		for offset := uint64(0); offset+s.row.arena.size <= uint64(len(b.bytes)); offset += 8 {
			if !s.promising(b, offset) {
				continue
			}
			if params := s.scanParams(data, b.start+offset); params != 0 && s.accepts(b.start+offset, params) {
				return b.start + offset, params
			}
		}
	}
	return 0, 0
}

// promising is the cheap first look, without reading anything further: the first bins
// either point into themselves or away, none is half empty, and the list of arenas goes on.
func (s search) promising(b block, offset uint64) bool {
	raw := b.bytes[offset : offset+s.row.arena.size]
	if mutex := binary.LittleEndian.Uint32(raw); mutex > 2 {
		return false
	}
	address := b.start + offset
	next := binary.LittleEndian.Uint64(raw[s.row.arena.next:])
	if next == 0 || next%8 != 0 || next != address && next%s.page != s.row.heapInfo%s.page {
		return false
	}
	for i := uint64(0); i < 8; i++ {
		at := s.row.arena.bins + i*16
		forward, back := binary.LittleEndian.Uint64(raw[at:]), binary.LittleEndian.Uint64(raw[at+8:])
		head := address + at - chunkHeader
		if (forward == 0) != (back == 0) || (forward == head) != (back == head) {
			return false
		}
	}
	return true
}

// scanParams looks for mp_ in the same data; the nearest one before the arena wins, as the
// linker lays them, then the nearest after it.
func (s search) scanParams(data []block, mainArena uint64) uint64 {
	var best, distance uint64
	for _, b := range data {
		for offset := uint64(0); offset+s.row.params.size <= uint64(len(b.bytes)); offset += 8 {
			p := decodeParams(b.bytes[offset:], s.row.params)
			if !p.plausible(s.page, s.heapStart) || !p.telling() {
				continue
			}
			address := b.start + offset
			d := max(address, mainArena) - min(address, mainArena)
			if best == 0 || d < distance {
				best, distance = address, d
			}
		}
	}
	return best
}

// telling asks for one value that only mp_ has by chance: the start of the brk heap, or a
// default that tunables rarely change.
func (p params) telling() bool {
	return p.sbrkBase != 0 || p.mmapsMax == 65536 || p.arenaTest == 8
}

// accepts checks every invariant of the arena list and of mp_ at these addresses.
func (s search) accepts(mainArena, paramsAddress uint64) bool {
	p, err := readParams(s.memory, s.row.params, paramsAddress)
	if err != nil || !p.plausible(s.page, s.heapStart) {
		return false
	}
	arena, err := readArena(s.memory, s.row, mainArena)
	if err != nil || !s.headsHold(arena) || !s.listCloses(arena) {
		return false
	}
	if arena.unused() {
		return p.sbrkBase == 0 && p.mmaps == 0
	}
	return !s.strict || s.firstChunkFits(p) && s.fastbinsFit(arena)
}

// headsHold tells whether the bins are lists: empty ones point into themselves, of the
// others the first chunk points back. A running target may be changing one or two of them.
func (s search) headsHold(a *arenaState) bool {
	if a.unused() {
		return a.next == a.address && a.attached == 1
	}
	broken := 0
	for i := range binCount / 2 {
		head, forward, back := a.bin(i)
		if forward == head && back == head {
			continue
		}
		if forward%alignment != 0 || back%alignment != 0 {
			return false
		}
		if reply, err := word(s.memory, forward+24); err != nil || reply != head {
			broken++
		}
	}
	return broken <= 2
}

// listCloses follows the arenas from the main one until they lead back to it.
func (s search) listCloses(a *arenaState) bool {
	next := a.next
	for range maxArenas {
		if next == a.address {
			return true
		}
		if next%s.page != s.row.heapInfo%s.page {
			return false
		}
		owner, err := word(s.memory, next-s.row.heapInfo)
		if err != nil || owner != next {
			return false
		}
		if next, err = word(s.memory, next+s.row.arena.next); err != nil {
			return false
		}
	}
	return false
}

// firstChunkFits tells whether the main heap starts with a chunk as large as this layout's
// thread cache: the first thing a thread allocates.
func (s search) firstChunkFits(p params) bool {
	if p.sbrkBase == 0 {
		return true
	}
	size, err := word(s.memory, alignUp(p.sbrkBase, alignment)+8)
	return err == nil && size&^sizeFlags == s.row.tcache.chunkBytes()
}

// fastbinsFit tells whether the fast lists make sense when read with this layout's mangling.
func (s search) fastbinsFit(a *arenaState) bool {
	if s.row.arena.fastbins == 0 {
		return true
	}
	for i := range fastbinCount {
		chunk := a.fastbin(i)
		if chunk == 0 {
			continue
		}
		next, err := word(s.memory, chunk+chunkHeader)
		if err != nil {
			return false
		}
		if next = s.row.reveal(chunk+chunkHeader, next); next == 0 {
			continue
		}
		if size, err := word(s.memory, next+8); err != nil || next%alignment != 0 || size&^sizeFlags != uint64(i+2)*16 {
			return false
		}
	}
	return true
}

// reveal undoes the mangling of a pointer that was read from address.
func (l layout) reveal(address, pointer uint64) uint64 {
	if l.mangled {
		return address>>12 ^ pointer
	}
	return pointer
}

func alignUp(value, unit uint64) uint64 { return (value + unit - 1) &^ (unit - 1) }
