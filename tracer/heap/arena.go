package heap

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

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

// segments returns the arena's stretches of chunks with their residency.
func (p *pass) segments(r *arenaResult) ([]segment, error) {
	if r.main {
		return p.mainSegment(r)
	}
	return p.heapSegments(r)
}

// mainSegment is the brk heap from where glibc first got memory.
func (p *pass) mainSegment(r *arenaResult) ([]segment, error) {
	s := segment{start: alignUp(p.params.sbrkBase, alignment), end: p.space.brk, main: true, top: r.state.top}
	if p.params.sbrkBase == 0 || s.start >= s.end {
		return nil, nil
	}
	r.heaps = 1
	var err error
	s.resident, err = p.pages.region(s.start, s.end)
	return []segment{s}, err
}

// heapSegments follows a thread arena's heaps from the newest, which holds the top, to the
// first, which holds the arena itself.
func (p *pass) heapSegments(r *arenaResult) ([]segment, error) {
	a, l := r.state, p.at.layout
	size := p.heapSize(a)
	if size == 0 {
		return nil, fmt.Errorf("no heap of the arena at %#x holds its top at %#x", a.address, a.top)
	}
	var segments []segment
	var total uint64
	var turns circle
	for heap := a.top &^ (size - 1); heap != 0; {
		info, err := p.heapInfo(heap)
		if err != nil {
			return nil, err
		}
		if turns.closes(heap) || info.arena != a.address || info.size > size || info.size < p.space.page || total > a.systemMem || !p.space.holds(heap, info.size) {
			return nil, fmt.Errorf("the heap at %#x does not belong to the arena at %#x", heap, a.address)
		}
		s := segment{start: heap + l.heapInfo, end: heap + info.size}
		if heap+l.heapInfo == a.address {
			s.start = alignUp(a.address+l.arena.size, alignment)
		}
		if len(segments) == 0 {
			s.top = a.top
		}
		if s.resident, err = p.pages.region(heap, s.end); err != nil {
			return nil, err
		}
		r.resident += s.resident.bytes(heap, s.start)
		segments = append(segments, s)
		total += info.size
		heap = info.previous
	}
	r.heaps = len(segments)
	slices.SortFunc(segments, func(a, b segment) int { return cmp.Compare(a.start, b.start) })
	return segments, nil
}

// heapInfo is the head of a thread arena's heap.
type heapInfo struct{ arena, previous, size uint64 }

func (p *pass) heapInfo(address uint64) (heapInfo, error) {
	state := [3]uint64{}
	for i := range state {
		value, err := word(p.memory, address+uint64(i)*8)
		if err != nil {
			return heapInfo{}, err
		}
		state[i] = value
	}
	return heapInfo{state[0], state[1], state[2]}, nil
}

// heapSize returns how large and aligned the arena's heaps are: 64 MiB, or four huge pages
// where glibc was told to use those (2.35 to 2.41). 0 when neither fits.
func (p *pass) heapSize(a *arenaState) uint64 {
	for _, size := range []uint64{64 << 20, 4 * p.params.hpPagesize} {
		if size == 0 || a.top < size {
			continue
		}
		if owner, err := word(p.memory, a.top&^(size-1)); err == nil && owner == a.address {
			return size
		}
	}
	return 0
}

// record turns the result into its public form.
func (r *arenaResult) record() recording.Arena {
	t := r.tally
	free := t.binnedBytes + t.fastBytes + t.topBytes
	return recording.Arena{
		Address:           recording.Address(r.state.address),
		Main:              r.main,
		AttachedThreads:   r.state.attached,
		SystemBytes:       r.state.systemMem,
		LiveBytes:         r.state.systemMem - min(free, r.state.systemMem),
		FreeBytes:         free,
		FreeResidentBytes: t.freeResident,
		TopBytes:          t.topBytes,
		TopResidentBytes:  t.topResident,
		FreeChunks:        t.binned + t.fastSeen,
		FastbinBytes:      t.fastBytes,
		LargestFreeBytes:  t.largest,
		TrimmableBytes:    t.trimmable + r.trimTop,
		Heaps:             r.heaps,
		Locked:            r.state.locked(),
		ResidentBytes:     r.resident,
		SwappedBytes:      r.swapped,
	}
}
