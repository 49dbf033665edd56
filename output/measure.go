package output

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"memtrace/tracer/recording"
)

// DefaultMeasure is what stacks weigh unless --measure says otherwise.
const DefaultMeasure = "alloc-bytes"

// measure is one way to weigh the stacks of a recording.
type measure struct {
	name string
	unit string // "bytes", "count" or "nanoseconds"
	// stacks lists the weighted stacks; section false means that the probe was off.
	stacks func(*recording.Recording) (stacks []weighedStack, section bool)
}

// weighedStack is a stack, leaf first, and its weight in the measure's unit.
type weighedStack struct {
	entry  string // the allocator's entry under the leaf, "" where there is none
	stack  recording.Stack
	weight uint64
	count  uint64 // how many calls, waits or events the weight comes of
}

func measures() []measure {
	return []measure{
		{"alloc-bytes", "bytes", sites(func(s *recording.Site) uint64 { return s.AllocBytes })},
		{"alloc-count", "count", sites(func(s *recording.Site) uint64 { return s.Allocs })},
		{"round-bytes", "bytes", sites(roundBytes)},
		{"live-bytes", "bytes", sites(func(s *recording.Site) uint64 { return s.LiveBytes })},
		{"lock-wait", "nanoseconds", lockWaits},
		{"arena-created", "count", arenasCreated},
		{"mmap-bytes", "bytes", mmapSites},
	}
}

// MeasureNames lists what --measure may be.
func MeasureNames() []string {
	var names []string
	for _, m := range measures() {
		names = append(names, m.name)
	}
	return names
}

// CheckMeasure tells whether a measure of that name exists.
func CheckMeasure(name string) error {
	if slices.Contains(MeasureNames(), name) {
		return nil
	}
	return fmt.Errorf("unknown measure %q: want one of %s", name, strings.Join(MeasureNames(), ", "))
}

// weigh returns the recording's stacks under the named measure, those that weigh nothing
// left out, and the unit of the weights.
func weigh(rec *recording.Recording, name string) ([]weighedStack, string, error) {
	for _, m := range measures() {
		if m.name != name {
			continue
		}
		all, section := m.stacks(rec)
		if !section {
			return nil, "", fmt.Errorf("the recording holds nothing for %s: its probe was off", name)
		}
		return slices.DeleteFunc(all, func(s weighedStack) bool { return s.weight == 0 }), m.unit, nil
	}
	return nil, "", CheckMeasure(name)
}

// sites weighs the allocation sites.
func sites(weight func(*recording.Site) uint64) func(*recording.Recording) ([]weighedStack, bool) {
	return func(rec *recording.Recording) ([]weighedStack, bool) {
		if rec.Allocation == nil {
			return nil, false
		}
		var all []weighedStack
		for i := range rec.Allocation.Sites {
			site := &rec.Allocation.Sites[i]
			all = append(all, weighedStack{site.Entry, site.Stack, weight(site), site.Allocs})
		}
		return all, true
	}
}

// lockWaits weighs the places where threads waited for each other; waiting for work (a
// condition variable, a join) is idleness and would hide them.
func lockWaits(rec *recording.Recording) ([]weighedStack, bool) {
	if rec.Locks == nil {
		return nil, false
	}
	var all []weighedStack
	for _, lock := range rec.Locks.Locks {
		if lock.Parked() {
			continue
		}
		for _, waiter := range lock.Waiters {
			all = append(all, weighedStack{"", waiter.Stack, uint64(max(0, waiter.WaitNS)), waiter.Waits})
		}
	}
	return all, true
}

func arenasCreated(rec *recording.Recording) ([]weighedStack, bool) {
	if rec.Arenas == nil {
		return nil, false
	}
	var all []weighedStack
	for _, event := range rec.Arenas.Created {
		all = append(all, weighedStack{"", event.Stack, 1, 1})
	}
	return all, true
}

func mmapSites(rec *recording.Recording) ([]weighedStack, bool) {
	if rec.Mmap == nil {
		return nil, false
	}
	var all []weighedStack
	for _, site := range rec.Mmap.Sites {
		all = append(all, weighedStack{"", site.Stack, site.MappedBytes, site.Maps})
	}
	return all, true
}

// roundBytes is what a site allocates in a round, rounded; a damaged recording's nonsense is 0.
func roundBytes(s *recording.Site) uint64 {
	if !(s.BytesPerRound > 0 && s.BytesPerRound < math.MaxInt64) {
		return 0
	}
	return uint64(math.Round(s.BytesPerRound))
}
