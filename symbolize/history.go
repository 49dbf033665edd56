package symbolize

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// maxRetired bounds how many mappings that are gone are remembered; the oldest go first.
const maxRetired = 16 << 10

// region is a mapping over the time it existed, counted in snapshots.
type region struct {
	Mapping
	first, last int // snapshots that show it, both inclusive; last is math.MaxInt while it lives
	module      *module
}

// history remembers which mapping covered an address at which snapshot. A library that was
// unloaded and whose addresses another one has taken over can so be told from its successor.
type history struct {
	snapshot int // the number of the newest one; the first is 1
	live     []*region
	retired  []*region
}

// replace takes a new snapshot: what it shows lives, what it no longer shows is retired. The
// mappings are in order of their addresses. It returns the regions that are new.
func (h *history) replace(mappings []Mapping) []*region {
	h.snapshot++
	old := make(map[Mapping]*region, len(h.live))
	for _, r := range h.live {
		old[r.Mapping] = r
	}
	live := make([]*region, 0, len(mappings))
	var fresh []*region
	for _, m := range mappings {
		r := old[m]
		if r == nil {
			r = &region{Mapping: m, first: h.snapshot, last: math.MaxInt}
			fresh = append(fresh, r)
		} else {
			delete(old, m)
		}
		live = append(live, r)
	}
	h.live = live
	for _, r := range old {
		h.retire(r)
	}
	h.trim()
	return fresh
}

// add takes a snapshot that differs from the last one by a single new mapping, which ends
// all those that it overlaps.
func (h *history) add(m Mapping) *region {
	h.snapshot++
	fresh := &region{Mapping: m, first: h.snapshot, last: math.MaxInt}
	live := make([]*region, 0, len(h.live)+1)
	for _, r := range h.live {
		if r.Start < m.End && m.Start < r.End {
			h.retire(r)
		} else {
			live = append(live, r)
		}
	}
	h.live = append(live, fresh)
	slices.SortFunc(h.live, func(a, b *region) int { return cmp.Compare(a.Start, b.Start) })
	h.trim()
	return fresh
}

// retire ends a region with the snapshot before the newest.
func (h *history) retire(r *region) {
	r.last = h.snapshot - 1
	h.retired = append(h.retired, r)
}

// trim forgets the mappings that have been gone for longest.
func (h *history) trim() {
	if excess := len(h.retired) - maxRetired; excess > 0 {
		h.retired = slices.Delete(h.retired, 0, excess)
	}
}

// find returns the region that covered the address at the snapshot. When none did, the
// stack was taken just after it: then it is the first region that appeared there later, and
// failing that the last one that had been there before. nil: no region ever covered it.
func (h *history) find(address uint64, snapshot int) *region {
	if snapshot <= 0 || snapshot > h.snapshot {
		snapshot = h.snapshot
	}
	live := h.at(address)
	if live != nil && live.first <= snapshot {
		return live
	}
	later, earlier := live, (*region)(nil)
	for _, r := range h.retired {
		switch {
		case !r.Contains(address):
		case r.first <= snapshot && snapshot <= r.last:
			return r
		case r.first > snapshot && (later == nil || r.first < later.first):
			later = r
		case r.last < snapshot && (earlier == nil || r.last > earlier.last):
			earlier = r
		}
	}
	if later != nil {
		return later
	}
	return earlier
}

// at returns the living region that covers the address.
func (h *history) at(address uint64) *region {
	i := sort.Search(len(h.live), func(i int) bool { return h.live[i].End > address })
	if i < len(h.live) && h.live[i].Contains(address) {
		return h.live[i]
	}
	return nil
}

// before returns the last living region of a file that starts at or below the address.
func (h *history) before(address uint64) *region {
	i := sort.Search(len(h.live), func(i int) bool { return h.live[i].Start > address })
	for i--; i >= 0; i-- {
		if h.live[i].module != nil {
			return h.live[i]
		}
	}
	return nil
}
