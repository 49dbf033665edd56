package tracer

import "slices"

// extent is a run of places in an array map.
type extent struct{ first, count uint32 }

func (e extent) end() uint32 { return e.first + e.count }

// extents hands out places of an array map, first fit.
type extents struct {
	size uint32
	used []extent // in order
}

// take reserves count places in a row; false when there are none.
func (x *extents) take(count uint32) (extent, bool) {
	if count == 0 {
		return extent{}, true
	}
	var free uint32
	for i, e := range x.used {
		if e.first-free >= count {
			taken := extent{free, count}
			x.used = slices.Insert(x.used, i, taken)
			return taken, true
		}
		free = e.end()
	}
	if x.size-free < count {
		return extent{}, false
	}
	taken := extent{free, count}
	x.used = append(x.used, taken)
	return taken, true
}

// give returns places that were taken.
func (x *extents) give(e extent) {
	if i := slices.Index(x.used, e); i >= 0 && e.count > 0 {
		x.used = slices.Delete(x.used, i, i+1)
	}
}
