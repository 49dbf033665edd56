package heap

import (
	"errors"
	"fmt"

	"memtrace/tracer/recording"
)

// arenaResult is one arena, walked.
type arenaResult struct {
	state     *arenaState
	tally     *tally
	main      bool
	heaps     int
	spans     []span // the memory that belongs to the arena
	resident  uint64
	swapped   uint64
	trimTop   uint64 // what a trim returns of the main arena's top
	sprawling bool   // counted by its lists: its memory is not one stretch
	torn      error  // why the figures are not to be trusted, nil when they are
}

// arenaTries is how often an arena that changes under the reader is read again at once.
const arenaTries = 3

// walkArena reads one arena until two readings of its state agree around a walk that adds up.
func (p *pass) walkArena(address uint64) (*arenaResult, error) {
	var result *arenaResult
	for range arenaTries {
		if err := p.ctx.Err(); err != nil {
			return nil, err
		}
		state, err := readArena(p.memory, p.at.layout, address)
		if err != nil {
			return nil, err
		}
		if result, err = p.walkOnce(state); err != nil {
			return nil, err
		}
		if result.torn == nil {
			break
		}
	}
	return result, nil
}

// walkOnce walks an arena from one reading of its state. An error means that the process
// cannot be read at all; what does not add up is in the result.
func (p *pass) walkOnce(state *arenaState) (*arenaResult, error) {
	r := &arenaResult{state: state, main: state.address == p.at.MainArena, tally: &tally{row: p.at.layout}}
	err := p.count(r)
	if errors.Is(err, ErrGone) {
		return nil, err
	}
	later, laterErr := readArena(p.memory, p.at.layout, state.address)
	switch {
	case laterErr != nil:
		return nil, laterErr
	case !state.sameAs(later):
		r.torn = errors.New("it changed while it was read")
	case err != nil:
		r.torn = fmt.Errorf("%w, although the arena's state stood still: the heap may be corrupt", err)
	}
	return r, nil
}

// count fills in the tally: by walking the arena's stretches of chunks, or by its lists
// where the walk does not account for them.
func (p *pass) count(r *arenaResult) error {
	if r.state.initialTop() {
		r.tally.topSeen = true
		return nil
	}
	fast, err := fastChunks(p.memory, r.state)
	if err != nil {
		return err
	}
	r.tally.fast = fast
	segments, err := p.segments(r)
	if err != nil {
		return err
	}
	for _, s := range segments {
		r.spans = append(r.spans, span{s.start, s.end})
		r.resident += s.resident.bytes(s.start, s.end)
		r.swapped += s.resident.swapped
		if err = r.tally.walk(newWindow(p.memory, s.resident), s); err != nil {
			break
		}
	}
	if err == nil {
		err = r.tally.closes(r.state)
	}
	if err != nil {
		if err = p.insteadByLists(r, err); err != nil {
			return err
		}
	}
	p.forecastTop(r)
	return nil
}

// insteadByLists decides about a walk that did not add up: a main arena that stands still
// is counted by its lists; anything else stays as it is, with the walk's complaint.
func (p *pass) insteadByLists(r *arenaResult, complaint error) error {
	if !r.main || errors.Is(complaint, ErrGone) {
		return complaint
	}
	later, err := readArena(p.memory, p.at.layout, r.state.address)
	if err != nil {
		return err
	}
	if !r.state.sameAs(later) {
		return complaint
	}
	if err := p.countLists(r); err != nil {
		return fmt.Errorf("%w; %w", complaint, err)
	}
	return nil
}

// closes verifies that the free chunks seen and the heads of the bins form closed lists,
// and that every fast chunk and the top were met.
func (t *tally) closes(a *arenaState) error {
	for i := range binCount / 2 {
		head, forward, back := a.bin(i)
		t.link(head, forward, back)
	}
	switch {
	case t.edges != 0:
		return errors.New("the lists of free chunks do not match the chunks that are free")
	case int(t.fastSeen) != len(t.fast):
		return errors.New("fast bins hold chunks that are not in the heap")
	case !t.topSeen:
		return errors.New("the top does not lie in the arena's heaps")
	}
	return nil
}

// countLists counts the main arena again by its lists.
func (p *pass) countLists(r *arenaResult) error {
	caches := r.tally.caches
	r.tally = &tally{row: p.at.layout, fast: r.tally.fast, caches: caches}
	r.sprawling = true
	r.spans, r.resident, r.swapped = nil, 0, 0
	regions := map[uint64]*residency{}
	residentAt := func(address uint64) *residency {
		m, found := p.space.at(address)
		if !found {
			return newResidency(address, address, p.space.page)
		}
		if regions[m.start] == nil {
			region, err := p.pages.region(m.start, m.end)
			if err != nil {
				region = newResidency(address, address, p.space.page)
			}
			regions[m.start] = region
			r.spans = append(r.spans, m)
			r.resident += region.bytes(m.start, m.end)
			r.swapped += region.swapped
		}
		return regions[m.start]
	}
	if err := r.tally.addLists(p.memory, r.state, residentAt); err != nil {
		return err
	}
	size, err := word(p.memory, r.state.top+8)
	if err != nil {
		return err
	}
	t := r.tally
	t.topSeen, t.topBytes, t.mergedTop = true, size&^sizeFlags, r.state.top
	if t.topBytes < chunkHeader || t.topBytes > r.state.systemMem {
		return fmt.Errorf("the top at %#x has the impossible size %#x", r.state.top, size)
	}
	t.resident = residentAt(r.state.top)
	t.topResident = t.resident.bytes(r.state.top, r.state.top+t.topBytes)
	t.freeResident += t.topResident
	return nil
}

// forecastTop adds what systrim would cut off the main arena's top: whole pages (or whole
// huge pages, when glibc asks for those) while it is the last thing in the brk heap.
func (p *pass) forecastTop(r *arenaResult) {
	t := r.tally
	end := r.state.top + t.topBytes
	if !r.main || t.resident == nil || end != p.space.brk {
		return
	}
	unit := p.space.page
	if p.params.thpPagesize != 0 {
		unit = p.params.thpPagesize
	}
	if size := end - t.mergedTop; size > minChunk+1 {
		extra := (size - minChunk - 1) &^ (unit - 1)
		r.trimTop = t.resident.bytes(end-extra, end)
	}
}

// free is the arena's share of fordblks. Of an arena that tore, chunks may have been counted
// that it no longer has; it never has more free memory than memory.
func (r *arenaResult) free() uint64 {
	return min(r.tally.binnedBytes+r.tally.fastBytes+r.tally.topBytes, r.state.systemMem)
}

// record turns the result into its public form.
func (r *arenaResult) record() recording.Arena {
	t, free := r.tally, r.free()
	return recording.Arena{
		Address:           recording.Address(r.state.address),
		Main:              r.main,
		AttachedThreads:   r.state.attached,
		SystemBytes:       r.state.systemMem,
		LiveBytes:         r.state.systemMem - free,
		FreeBytes:         free,
		FreeResidentBytes: min(t.freeResident, free),
		TopBytes:          t.topBytes,
		TopResidentBytes:  t.topResident,
		FreeChunks:        t.binned + t.fastSeen,
		FastbinBytes:      t.fastBytes,
		LargestFreeBytes:  t.largest,
		TrimmableBytes:    min(t.trimmable+r.trimTop, t.freeResident, free),
		Heaps:             r.heaps,
		Locked:            r.state.locked(),
		ResidentBytes:     r.resident,
		SwappedBytes:      r.swapped,
	}
}
