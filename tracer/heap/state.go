package heap

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// arenaState is one malloc_state as it was read.
type arenaState struct {
	address   uint64
	layout    layout
	raw       []byte
	top       uint64
	next      uint64
	attached  uint64
	systemMem uint64
}

// readArena reads the malloc_state at address.
func readArena(memory Memory, l layout, address uint64) (*arenaState, error) {
	a := &arenaState{address: address, layout: l, raw: make([]byte, l.arena.size)}
	if err := memory.Read(address, a.raw); err != nil {
		return nil, err
	}
	a.top = a.word(l.arena.top)
	a.next = a.word(l.arena.next)
	a.attached = a.word(l.arena.attached)
	a.systemMem = a.word(l.arena.systemMem)
	return a, nil
}

func (a *arenaState) word(offset uint64) uint64 {
	return binary.LittleEndian.Uint64(a.raw[offset:])
}

// locked tells whether a thread held the arena's mutex.
func (a *arenaState) locked() bool { return binary.LittleEndian.Uint32(a.raw) != 0 }

// bin returns the chunk address by which lists name the head of bin i (0 is bin 1, the
// unsorted list), and the head's own two pointers.
func (a *arenaState) bin(i int) (head, forward, back uint64) {
	offset := a.layout.arena.bins + uint64(i)*16
	return a.address + offset - chunkHeader, a.word(offset), a.word(offset + 8)
}

// fastbin returns the first chunk of fast bin i, 0 when it is empty.
func (a *arenaState) fastbin(i int) uint64 {
	return a.word(a.layout.arena.fastbins + uint64(i)*8)
}

// initialTop tells whether the arena never had memory: its top is then its own first bin.
func (a *arenaState) initialTop() bool {
	return a.top == 0 || a.top == a.address+a.layout.arena.bins-chunkHeader
}

// unused tells whether the arena is as the linker left it: no bin was ever set up.
func (a *arenaState) unused() bool {
	return a.top == 0 && a.word(a.layout.arena.bins) == 0
}

// sameAs tells whether nothing but the mutex and the count of threads changed between two readings.
func (a *arenaState) sameAs(later *arenaState) bool {
	l := a.layout.arena
	return bytes.Equal(a.raw[8:l.next], later.raw[8:l.next]) &&
		a.next == later.next && a.systemMem == later.systemMem
}

// params is struct malloc_par as it was read.
type params struct {
	trimThreshold, topPad, mmapThreshold, arenaTest, arenaMax uint64
	thpPagesize, hpPagesize                                   uint64
	mmaps, mmapsMax                                           uint32
	fixedThreshold                                            bool
	mmappedMem, sbrkBase                                      uint64
	tcacheBins, tcacheMaxBytes, tcacheCount                   uint64
}

// readParams reads the malloc_par at address.
func readParams(memory Memory, l paramLayout, address uint64) (params, error) {
	raw := make([]byte, l.size)
	if err := memory.Read(address, raw); err != nil {
		return params{}, fmt.Errorf("read mp_: %w", err)
	}
	return decodeParams(raw, l), nil
}

func decodeParams(raw []byte, l paramLayout) params {
	long := func(offset uint64) uint64 { return binary.LittleEndian.Uint64(raw[offset:]) }
	short := func(offset uint64) uint32 { return binary.LittleEndian.Uint32(raw[offset:]) }
	p := params{
		trimThreshold: long(l.trimThreshold), topPad: long(l.topPad), mmapThreshold: long(l.mmapThreshold),
		arenaTest: long(l.arenaTest), arenaMax: long(l.arenaMax),
		mmaps: short(l.mmaps), mmapsMax: short(l.mmapsMax), fixedThreshold: short(l.noDynThreshold) != 0,
		mmappedMem: long(l.mmappedMem), sbrkBase: long(l.sbrkBase),
		tcacheBins: long(l.tcacheBins), tcacheMaxBytes: long(l.tcacheMaxBytes), tcacheCount: long(l.tcacheCount),
	}
	if l.thpPagesize != 0 {
		p.thpPagesize, p.hpPagesize = long(l.thpPagesize), long(l.hpPagesize)
	}
	return p
}

// plausible tells whether these bytes can be mp_: values that no tunable can make
// otherwise. Page is the page size, heapStart the start of the brk heap (0: unknown).
func (p params) plausible(page, heapStart uint64) bool {
	const addressSpace, maxHugePage = 1 << 46, 16 << 30 // arm64 with pages of 64 KiB
	switch {
	case p.tcacheBins == 0 || p.tcacheBins > 64 || p.tcacheMaxBytes > 1<<30 || p.tcacheCount > 0xffff:
		return false // builds without thread caches are not supported: nothing marks mp_ there
	case p.arenaTest > 1<<20 || p.arenaMax > 1<<20 || p.topPad > addressSpace:
		return false
	case p.mmapThreshold == 0 && p.mmapsMax != 0 || p.mmapsMax > 1<<30 || p.mmaps > 1<<30:
		return false
	case p.mmappedMem%page != 0 || (p.mmaps == 0) != (p.mmappedMem == 0):
		return false
	case p.thpPagesize&(p.thpPagesize-1) != 0 || p.hpPagesize&(p.hpPagesize-1) != 0: // not powers of two
		return false
	case p.thpPagesize > maxHugePage || p.hpPagesize > maxHugePage:
		return false
	case p.sbrkBase == 0:
		return true
	}
	return heapStart == 0 || p.sbrkBase >= heapStart && p.sbrkBase < heapStart+addressSpace
}
