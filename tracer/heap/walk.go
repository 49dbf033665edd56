package heap

import (
	"encoding/binary"
	"fmt"
)

// segment is a stretch of chunks that lie one after another: the main heap, or one heap of
// a thread's arena. top is 0 when the arena's top lies elsewhere.
type segment struct {
	start, end uint64
	top        uint64
	main       bool
	resident   *residency
}

// tally is what a walk adds up over the chunks of one arena.
type tally struct {
	row  layout
	fast []uint64 // addresses of the chunks in fast bins, ascending

	binned, binnedBytes   uint64 // chunks in the unsorted, small and large lists
	fastSeen, fastBytes   uint64
	topBytes, topResident uint64
	freeResident          uint64 // of binned and fast chunks and the top
	largest               uint64
	trimmable             uint64 // resident bytes that malloc_trim(0) would return
	topSeen               bool
	mergedTop             uint64   // where the top starts once fast chunks below it have merged into it
	caches                []uint64 // chunks as large as a thread cache, in use

	// edges sums a hash of every link from a chunk to its successor and subtracts one of
	// every link back. It is zero exactly when the lists that go through all the free
	// chunks seen are doubly linked and closed, so no list needs to be walked.
	edges uint64

	runStart, runEnd uint64 // free chunks that malloc_trim would first merge
	resident         *residency
}

// chunk is a header and the two words after it.
type chunk struct {
	address, previousSize, size, flags, forward, back uint64
}

// maxCaches bounds how many chunks are looked at as possible thread caches.
const maxCaches = 1 << 16

// walk goes through the segment chunk by chunk and verifies that they tile it.
func (t *tally) walk(w *window, s segment) error {
	t.resident, t.runStart, t.runEnd = s.resident, 0, 0
	defer t.endRun()
	var before chunk // the chunk before, whose fate the next header tells; size 0: none
	for address := s.start; ; {
		c, err := readChunk(w, address, s.end)
		if err != nil {
			return err
		}
		if before.size != 0 {
			if err := t.settle(before, c); err != nil {
				return err
			}
		}
		if address == s.top {
			return t.reachTop(c, s)
		}
		if c.size <= chunkHeader {
			return t.fence(w, c, s)
		}
		if err := c.check(s); err != nil {
			return err
		}
		before = c
		address += c.size
	}
}

// readChunk reads the header at address and, where the segment goes on, what follows it.
func readChunk(w *window, address, limit uint64) (chunk, error) {
	n := minChunk
	if limit-address < minChunk {
		n = chunkHeader
	}
	raw, err := w.at(address, n, limit)
	if err != nil {
		return chunk{}, err
	}
	return decodeChunk(address, raw), nil
}

func decodeChunk(address uint64, raw []byte) chunk {
	size := binary.LittleEndian.Uint64(raw[8:])
	c := chunk{
		address:      address,
		previousSize: binary.LittleEndian.Uint64(raw),
		size:         size &^ sizeFlags,
		flags:        size & sizeFlags,
	}
	if len(raw) >= minChunk {
		c.forward, c.back = binary.LittleEndian.Uint64(raw[16:]), binary.LittleEndian.Uint64(raw[24:])
	}
	return c
}

// check verifies what is true of every chunk but the top and the fences.
func (c chunk) check(s segment) error {
	switch {
	case c.size < minChunk || c.size%alignment != 0 || c.size > s.end-c.address:
		return fmt.Errorf("the chunk at %#x has the impossible size %#x", c.address, c.size)
	case c.flags&isMmapped != 0:
		return fmt.Errorf("the chunk at %#x says it is mmapped, inside an arena", c.address)
	case s.main && c.flags&nonMain != 0:
		return fmt.Errorf("the chunk at %#x says it is of a thread's arena, inside the main one", c.address)
	}
	return nil
}

// settle counts the chunk before, now that the next header tells whether it is in use.
func (t *tally) settle(before, next chunk) error {
	if next.flags&prevInUse == 0 {
		if next.previousSize != before.size {
			return fmt.Errorf("the free chunk at %#x has size %#x at its start and %#x at its end", before.address, before.size, next.previousSize)
		}
		t.addBinned(before)
		return nil
	}
	if int(t.fastSeen) < len(t.fast) && t.fast[t.fastSeen] == before.address {
		t.fastSeen++
		t.fastBytes += before.size
		t.addFree(before)
		return nil
	}
	t.endRun()
	if before.size == t.row.tcache.chunkBytes() && len(t.caches) < maxCaches {
		t.caches = append(t.caches, before.address+chunkHeader)
	}
	return nil
}

// addBinned counts a chunk that is in a doubly linked list.
func (t *tally) addBinned(c chunk) {
	t.binned++
	t.binnedBytes += c.size
	t.largest = max(t.largest, c.size)
	t.link(c.address, c.forward, c.back)
	t.addFree(c)
}

func (t *tally) link(address, forward, back uint64) {
	t.edges += edge(address, forward) - edge(back, address)
}

// edge hashes a link (the finaliser of a 64-bit mixer, so that sums do not cancel by chance).
func edge(from, to uint64) uint64 {
	h := from*0x9e3779b97f4a7c15 ^ (to + 0x632be59bd9b4e019)
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	h = (h ^ h>>29) * 0xff51afd7ed558ccd
	return h ^ h>>32
}

// addFree counts residency and extends the run of neighbours that a trim would merge.
func (t *tally) addFree(c chunk) {
	t.freeResident += t.resident.bytes(c.address, c.address+c.size)
	if t.runEnd != c.address || t.runStart == 0 {
		t.endRun()
		t.runStart = c.address
	}
	t.runEnd = c.address + c.size
}

// endRun counts the pages that malloc_trim would return from the run of free chunks.
func (t *tally) endRun() {
	if t.runStart != 0 {
		t.trimmable += trimmableIn(t.resident, t.runStart, t.runEnd)
	}
	t.runStart, t.runEnd = 0, 0
}

// trimmableIn returns the resident bytes of the whole pages inside a free chunk, after the
// struct malloc_chunk at its start that mtrim (malloc/malloc.c) leaves alone.
func trimmableIn(resident *residency, start, end uint64) uint64 {
	const header = 48 // sizeof (struct malloc_chunk)
	page := resident.page
	first, last := alignUp(start+header, page), end&^(page-1)
	if end-start <= page-1+header || first >= last {
		return 0
	}
	return resident.bytes(first, last)
}

// reachTop ends the walk of the segment in which the arena's top lies. A fast chunk right
// below the top merges into it when malloc_trim consolidates.
func (t *tally) reachTop(top chunk, s segment) error {
	end := top.address + top.size
	if top.size < chunkHeader || top.size > s.end-top.address || !s.main && end != s.end {
		return fmt.Errorf("the top at %#x has the impossible size %#x", top.address, top.size)
	}
	t.topSeen, t.topBytes, t.mergedTop = true, top.size, top.address
	t.topResident = s.resident.bytes(top.address, end)
	t.freeResident += t.topResident
	if t.runEnd == top.address && t.runStart != 0 {
		t.mergedTop = t.runStart
		t.runStart, t.runEnd = 0, 0
	}
	return nil
}

// fence ends the walk at what glibc leaves at the end of a heap that it outgrew: a chunk
// of two words and, in a thread's heap, a header of size 0.
func (t *tally) fence(w *window, c chunk, s segment) error {
	if c.size == chunkHeader {
		next, err := readChunk(w, c.address+chunkHeader, s.end)
		if err != nil {
			return err
		}
		if s.main && next.size == chunkHeader {
			return nil
		}
		c = next
	}
	if s.main || c.size != 0 || c.address+chunkHeader != s.end {
		return fmt.Errorf("the chunk at %#x has the impossible size %#x", c.address, c.size)
	}
	return nil
}
