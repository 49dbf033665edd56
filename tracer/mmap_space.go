package tracer

import "sort"

// mappedSpace is which parts of the target's address space were mapped while it was traced,
// and by which site. What was mapped before is not in it.
type mappedSpace struct {
	parts []mappedPart // sorted, without overlaps
}

// mappedPart is a mapped range and the site that mapped it: the id of its stack; for
// malloc's own mappings allocatorSite.
type mappedPart struct {
	start, end uint64
	site       uint64
}

// allocatorSite stands for the allocator's own mappings. No stack has this id.
const allocatorSite = 0

// insert notes a mapping. What lay there before is gone: MAP_FIXED replaces it.
func (m *mappedSpace) insert(start, end, site uint64) (replaced []mappedPart) {
	replaced = m.remove(start, end)
	at := m.after(start)
	m.parts = append(m.parts, mappedPart{})
	copy(m.parts[at+1:], m.parts[at:])
	m.parts[at] = mappedPart{start, end, site}
	return replaced
}

// remove takes a range out and returns the parts that were in it.
func (m *mappedSpace) remove(start, end uint64) []mappedPart {
	first := sort.Search(len(m.parts), func(i int) bool { return m.parts[i].end > start })
	last := first
	var removed, rest []mappedPart
	for ; last < len(m.parts) && m.parts[last].start < end; last++ {
		part := m.parts[last]
		if part.start < start {
			rest = append(rest, mappedPart{part.start, start, part.site})
		}
		if part.end > end {
			rest = append(rest, mappedPart{end, part.end, part.site})
		}
		removed = append(removed, mappedPart{max(part.start, start), min(part.end, end), part.site})
	}
	if last > first {
		m.parts = append(m.parts[:first], append(rest, m.parts[last:]...)...)
	}
	return removed
}

// after is the place of the first part that starts at an address or later.
func (m *mappedSpace) after(address uint64) int {
	return sort.Search(len(m.parts), func(i int) bool { return m.parts[i].start >= address })
}
