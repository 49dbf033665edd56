package heap

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// fastChunks follows the arena's fast bins and returns the chunks' addresses, ascending.
func fastChunks(memory Memory, a *arenaState) ([]uint64, error) {
	if a.layout.arena.fastbins == 0 || a.unused() {
		return nil, nil
	}
	view := &pageView{memory: memory}
	limit := a.systemMem / minChunk
	var chunks []uint64
	for i := range fastbinCount {
		size := uint64(i+2) * alignment
		for address := a.fastbin(i); address != 0; {
			if uint64(len(chunks)) >= limit || address%alignment != 0 {
				return nil, fmt.Errorf("fast bin %d does not end, or leads astray at %#x", i, address)
			}
			raw, err := view.at(address)
			if err != nil {
				return nil, err
			}
			if found := binary.LittleEndian.Uint64(raw[8:]) &^ sizeFlags; found != size {
				return nil, fmt.Errorf("fast bin %d holds a chunk of size %#x at %#x", i, found, address)
			}
			chunks = append(chunks, address)
			address = a.layout.reveal(address+chunkHeader, binary.LittleEndian.Uint64(raw[16:]))
		}
	}
	slices.Sort(chunks)
	return chunks, nil
}

// addLists counts the arena's free chunks by following its lists, as mallinfo2 does. It is
// for arenas whose chunks do not all lie in one stretch (other users of sbrk, a main arena
// that had to be mapped): slower than a walk, and blind to chunks in use.
func (t *tally) addLists(memory Memory, a *arenaState, residentAt func(uint64) *residency) error {
	view := &pageView{memory: memory}
	limit := a.systemMem / minChunk
	for i := range binCount / 2 {
		head, _, last := a.bin(i)
		next := head
		for address := last; address != head; {
			if t.binned >= limit || address%alignment != 0 || address == 0 {
				return fmt.Errorf("bin %d does not end, or leads astray at %#x", i+1, address)
			}
			raw, err := view.at(address)
			if err != nil {
				return err
			}
			c := decodeChunk(address, raw)
			if c.forward != next || c.size < minChunk || c.size > a.systemMem {
				return fmt.Errorf("bin %d is broken at %#x: size %#x, next %#x where %#x belongs", i+1, address, c.size, c.forward, next)
			}
			t.resident = residentAt(address)
			t.addBinned(c)
			t.endRun()
			next, address = address, c.back
		}
	}
	for _, address := range t.fast {
		size, err := word(memory, address+8)
		if err != nil {
			return err
		}
		t.fastSeen++
		t.fastBytes += size &^ sizeFlags
		t.freeResident += residentAt(address).bytes(address, address+size&^sizeFlags)
	}
	return nil
}
