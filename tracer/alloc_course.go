package tracer

import (
	"sync"

	"memtrace/tracer/recording"
)

// Bounds of the course of a trace: when the points are full, every second one goes and the
// slices become twice as long.
const (
	maxPoints     = 600
	maxLivePoints = 60
	maxLiveSites  = 500
)

// allocCourse is how the figures grew over the trace: one point for every slice of time, and
// the live bytes of the largest sites at fewer moments.
type allocCourse struct {
	mutex   sync.Mutex
	every   int // ticks in a slice
	ticks   int
	last    recording.AllocationTotals
	lastNS  int64
	lastIn  int64 // coverage at the end of the last slice
	slices  []recording.AllocationPoint
	liveAt  []int64
	live    map[uint64][]uint64 // by site; shorter than liveAt for sites that came late
	liveGap int                 // ticks between two moments
}

// tick takes in the totals at a time since the start of the trace; inNS is for how long the
// probes had been in by then.
func (c *allocCourse) tick(atNS, inNS int64, totals recording.AllocationTotals) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.every = max(c.every, 1)
	c.ticks++
	if c.ticks%c.every != 0 || atNS <= c.lastNS {
		return
	}
	c.slices = append(c.slices, recording.AllocationPoint{
		TimeNS: atNS,
		Allocs: totals.Allocs - c.last.Allocs, AllocBytes: totals.AllocBytes - c.last.AllocBytes,
		Frees: totals.Frees - c.last.Frees, FreeBytes: totals.FreeBytes - c.last.FreeBytes,
		Coverage: min(1, float64(inNS-c.lastIn)/float64(atNS-c.lastNS)),
	})
	c.last, c.lastNS, c.lastIn = totals, atNS, inNS
	if len(c.slices) >= maxPoints {
		c.slices = mergePairs(c.slices)
		c.every *= 2
	}
}

// mergePairs joins each two slices into one.
func mergePairs(slices []recording.AllocationPoint) []recording.AllocationPoint {
	var merged []recording.AllocationPoint
	start := int64(0)
	for i := 0; i+1 < len(slices); i += 2 {
		a, b := slices[i], slices[i+1]
		whole := float64(b.TimeNS - start)
		merged = append(merged, recording.AllocationPoint{
			TimeNS: b.TimeNS, Allocs: a.Allocs + b.Allocs, AllocBytes: a.AllocBytes + b.AllocBytes,
			Frees: a.Frees + b.Frees, FreeBytes: a.FreeBytes + b.FreeBytes,
			Coverage: (a.Coverage*float64(a.TimeNS-start) + b.Coverage*float64(b.TimeNS-a.TimeNS)) / whole,
		})
		start = b.TimeNS
	}
	if len(slices)%2 == 1 {
		merged = append(merged, slices[len(slices)-1])
	}
	return merged
}

// liveDue tells whether live bytes are wanted at this tick.
func (c *allocCourse) liveDue() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.ticks%max(c.liveGap, 1) == 0
}

// tickLive takes in the live bytes of the sites.
func (c *allocCourse) tickLive(atNS int64, live map[uint64]uint64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.live == nil {
		c.live = map[uint64][]uint64{}
	}
	for site, bytes := range live {
		values, known := c.live[site]
		if !known && len(c.live) >= maxLiveSites {
			continue
		}
		for len(values) < len(c.liveAt) {
			values = append(values, 0)
		}
		c.live[site] = append(values, bytes)
	}
	c.liveAt = append(c.liveAt, atNS)
	if len(c.liveAt) < maxLivePoints {
		return
	}
	c.liveAt = everySecond(c.liveAt)
	for site, values := range c.live {
		c.live[site] = everySecond(values)
	}
	c.liveGap = 2 * max(c.liveGap, 1)
}

// everySecond keeps the values with odd indices, so that the newest of an even number stays.
func everySecond[V any](values []V) []V {
	var kept []V
	for i := 1; i < len(values); i += 2 {
		kept = append(kept, values[i])
	}
	return kept
}

// points returns the slices so far.
func (c *allocCourse) points() []recording.AllocationPoint {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return append([]recording.AllocationPoint(nil), c.slices...)
}

// liveSeries returns a site's live bytes over time.
func (c *allocCourse) liveSeries(site uint64) []recording.LivePoint {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var series []recording.LivePoint
	for i, bytes := range c.live[site] {
		if i < len(c.liveAt) {
			series = append(series, recording.LivePoint{TimeNS: c.liveAt[i], LiveBytes: bytes})
		}
	}
	return series
}
