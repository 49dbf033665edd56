// Package compare holds two recordings or soaks against each other: what changed, beyond
// what the scatter of their own series explains, and whether the change did what it was
// made for. It is pure.
package compare

import (
	"math"
	"slices"

	"memtrace/tracer/recording"
)

// Side is one of the two that are compared: a recording, or one start of a soak.
type Side struct {
	about    recording.ComparisonSide
	readings map[string]reading
	rec      *recording.Recording // nil for a soak
	samples  []recording.Sample
	notes    []string // what the reader must know about this side
	target   recording.Target
}

// WithNote returns the side with one more thing that the reader must know about it.
func (s Side) WithNote(note string) Side {
	s.notes = append(slices.Clone(s.notes), note)
	return s
}

// reading is one quantity of a side with its standard error, 0 where nothing tells it.
type reading struct {
	value    float64
	standard float64
}

// measures lists the rows of the A/B table in their order.
var measures = []struct{ name, unit string }{
	{"committed", "bytes"}, {"resident", "bytes"}, {"live", "bytes"}, {"free", "bytes"}, {"free, resident", "bytes"},
	{"malloc_trim would return", "bytes"}, {"arenas", "count"}, {"arenas created", "count"}, {"threads", "count"},
	{"allocated", "bytes/s"}, {"allocations", "count/s"}, {"frees", "count/s"}, {"rounds", "count/s"},
	{"allocated a round", "bytes"}, {"allocations a round", "count"}, {"mapped outside malloc", "bytes/s"},
	{"lock waits", "count/s"}, {"lock wait time", "ns/s"}, {"lock handoffs", "count/s"}, {"futex calls in vain", "count/s"},
	{"voluntary switches", "count/s"}, {"nonvoluntary switches", "count/s"}, {"CPU time", "ns/s"}, {"runnable, not running", "ns/s"},
}

// confidence is how many standard errors of a difference 95 % of chance stays within.
const confidence = 1.96

// Sides compares two sides.
func Sides(before, after Side) *recording.Comparison {
	c := &recording.Comparison{
		Schema: recording.ComparisonSchema, Before: before.about, After: after.about,
		Warnings: warnings(before, after), Changes: []recording.Change{}, Sites: []recording.SiteChange{},
	}
	for _, m := range measures {
		was, knownBefore := before.readings[m.name]
		is, knownAfter := after.readings[m.name]
		if knownBefore && knownAfter && (was.value != 0 || is.value != 0) {
			if row := change(m.name, m.unit, was, is); finite(row) {
				c.Changes = append(c.Changes, row)
			}
		}
	}
	if before.rec != nil && after.rec != nil {
		c.Sites, c.SitesUnchanged = siteChanges(before.rec, after.rec)
		c.Stacks = stackPairs(before.rec, after.rec)
	}
	c.Verdicts = verdicts(c.Changes)
	c.Summary = summary(c.Verdicts)
	return c
}

// change makes a row of the table.
func change(name, unit string, before, after reading) recording.Change {
	row := recording.Change{Name: name, Unit: unit, Before: before.value, After: after.value, Difference: after.value - before.value}
	if before.value != 0 {
		row.Ratio = after.value / before.value
	}
	row.Noise = confidence * math.Hypot(before.standard, after.standard)
	row.WithinNoise = row.Noise > 0 && math.Abs(row.Difference) <= row.Noise
	return row
}

// finite tells whether a row can be written: a damaged recording may hold any number.
func finite(row recording.Change) bool {
	sum := math.Abs(row.Difference) + math.Abs(row.Ratio) + row.Noise
	return !math.IsNaN(sum) && !math.IsInf(sum, 0)
}
