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
		var turns circle
		for address := a.fastbin(i); address != 0; {
			if uint64(len(chunks)) >= limit || address%alignment != 0 || turns.closes(address) {
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

// circle notices, in constant memory, that a list goes round (Brent's algorithm): it
// remembers one address, each time for twice as long.
type circle struct {
	remembered   uint64
	steps, limit uint64
}

func (c *circle) closes(address uint64) bool {
	if address == c.remembered {
		return true
	}
	if c.steps++; c.steps > c.limit {
		c.remembered, c.steps, c.limit = address, 0, 2*c.limit+1
	}
	return false
}

// addLists counts the arena's free chunks by following its lists, as mallinfo2 does. It is
// for arenas whose chunks do not all lie in one stretch (other users of sbrk, a main arena
// that had to be mapped): slower than a walk, and blind to chunks in use.
func (t *tally) addLists(memory Memory, a *arenaState, residentAt func(uint64) *residency) error {
	view, after := &pageView{memory: memory}, &pageView{memory: memory}
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
			if c.forward != next || c.size < minChunk || c.size > a.systemMem || c.size%alignment != 0 || !ends(after, c) {
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

// ends tells whether the header after a free chunk agrees that it is free, and on its size.
func ends(view *pageView, c chunk) bool {
	raw, err := view.at(c.address + c.size)
	if err != nil {
		return false
	}
	next := decodeChunk(c.address+c.size, raw)
	return next.flags&prevInUse == 0 && next.previousSize == c.size
}
