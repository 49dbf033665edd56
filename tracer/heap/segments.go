package heap

import (
	"cmp"
	"fmt"
	"slices"
)

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
