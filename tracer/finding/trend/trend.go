// Package trend says what a series of memory readings does: plateau, leak, steps, still
// warming up, or too short to say. It is pure statistics over (time, bytes) points.
//
// The judgement rests on the floor of the series, not on its course: a process that works
// fills and empties its memory, and what does not come back shows in the local minima. The
// series is cut into windows and the minimum of each is kept. Their slope is Theil and
// Sen's (the median of the slopes of all pairs; P. K. Sen, JASA 63, 1968), with Sen's
// confidence interval from Kendall's variance, so that single outliers neither make nor
// hide a leak. A constant, a line and a staircase are then compared by their Bayesian
// information criterion.
package trend

import (
	"math"
	"sort"
	"time"

	"memtrace/tracer/recording"
)

// Kind is the verdict.
type Kind = recording.TrendKind

// The verdicts.
const (
	Plateau  = recording.Plateau
	Leak     = recording.Leak
	Steps    = recording.Steps
	WarmUp   = recording.WarmUp
	TooShort = recording.TooShort
)

// Verdict is the judgement and the numbers that it rests on.
type Verdict = recording.Trend

// Point is one reading.
type Point struct {
	At    time.Duration // since the first reading
	Bytes float64
}

// The least that a judgement takes.
const (
	leastPoints  = 12      // for a slope worth the name
	fewPoints    = 4       // for a plateau that is flat to the eye
	flatShare    = 0.01    // of the level: within it a series is flat
	flatBytes    = 1 << 20 // and so it is within a MiB
	windows      = 24      // minima that are kept
	leastWindow  = 3       // readings in a window, so that a minimum says something
	significantZ = 3.5     // for "it grows": one false alarm in four thousand flat series
	intervalZ    = 1.96    // 95 %, for the interval shown
)

// Judge judges one series, in the order of time, of one start of one process.
func Judge(points []Point) Verdict {
	v := Verdict{Kind: TooShort, Points: len(points), Floors: []float64{}}
	if len(points) == 0 {
		return v
	}
	v.First, v.Last = points[0].Bytes, points[len(points)-1].Bytes
	v.Span = points[len(points)-1].At - points[0].At
	v.Floors = quarters(points)
	v.Drift = drift(v.Floors)
	v.Step, v.StepAt = jump(points)
	if len(points) < leastPoints {
		if len(points) >= fewPoints && flat(points) {
			v.Kind = Plateau
		}
		return v
	}
	steady := points[warmUp(points):]
	if len(steady) < len(points) {
		v.WarmUpEnd = steady[0].At
		v.Floors = quarters(steady)
		v.Drift = drift(v.Floors)
	}
	decide(&v, steady)
	return v
}

// decide decides on the part of the series behind the warm-up.
func decide(v *Verdict, points []Point) {
	minima := localMinima(points)
	var z float64
	v.Slope, v.SlopeLow, v.SlopeHigh, z = senSlope(minima)
	m := fit(minima)
	v.Step, v.StepAt = m.largestStep()
	tolerance := tolerance(minima)
	grown := v.Slope * v.Span.Hours()
	switch {
	case flat(minima):
		v.Kind = Plateau
	case saturating(v.Floors, tolerance):
		v.Kind = WarmUp
	case m.shape == staircase && math.Abs(v.Step) > tolerance:
		v.Kind = Steps
	case z > significantZ && v.SlopeLow > 0 && grown > tolerance && v.Drift > tolerance/2:
		v.Kind = Leak
	case v.SlopeHigh*v.Span.Hours() <= 2*tolerance || z <= 0:
		v.Kind = Plateau
	case z < intervalZ && len(minima) >= leastPoints/2:
		v.Kind = Plateau
	}
}

// tolerance is the change that matters: a hundredth of the level, at least a MiB.
func tolerance(points []Point) float64 {
	values := values(points)
	return math.Max(flatBytes, flatShare*median(values))
}

// flat tells whether all points lie within the tolerance of each other.
func flat(points []Point) bool {
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range points {
		low, high = math.Min(low, p.Bytes), math.Max(high, p.Bytes)
	}
	return high-low <= tolerance(points)
}

// quarters returns the minimum of each quarter of the readings.
func quarters(points []Point) []float64 {
	if len(points) < 4 {
		return []float64{}
	}
	floors := make([]float64, 4)
	for q := range floors {
		part := points[q*len(points)/4 : (q+1)*len(points)/4]
		floors[q] = part[0].Bytes
		for _, p := range part {
			floors[q] = math.Min(floors[q], p.Bytes)
		}
	}
	return floors
}

// drift is by how much the floor moved from the first quarter to the last.
func drift(floors []float64) float64 {
	if len(floors) == 0 {
		return 0
	}
	return floors[len(floors)-1] - floors[0]
}

// saturating tells whether the floor still rises, but each quarter by clearly less than
// the one before: a cache that fills, an allocator that finds its size.
func saturating(floors []float64, tolerance float64) bool {
	if len(floors) < 4 {
		return false
	}
	first, second, third := floors[1]-floors[0], floors[2]-floors[1], floors[3]-floors[2]
	return first > tolerance && second > 0 && second < 0.65*first && third > tolerance/8 && third < 0.65*second
}

// warmUp returns the index behind the first growth: the first reading that reaches the
// line on which the second half lies. A growth that ends late is not a warm-up but what the
// series is about.
func warmUp(points []Point) int {
	half := points[len(points)/2:]
	minima := localMinima(half)
	slope, _, _, _ := senSlope(minima)
	rests := make([]float64, len(half))
	for i, p := range half {
		rests[i] = p.Bytes - slope*p.At.Hours()
	}
	start := median(rests)
	noise := math.Max(3*deviation(rests), tolerance(half))
	for i, p := range points[:len(points)*2/5] {
		if p.Bytes >= start+slope*p.At.Hours()-noise {
			if i < 2 {
				return 0
			}
			return i
		}
	}
	return 0
}

// jump is the largest change between two readings, for series too short for more.
func jump(points []Point) (bytes float64, at time.Duration) {
	for i := 1; i < len(points); i++ {
		if change := points[i].Bytes - points[i-1].Bytes; math.Abs(change) > math.Abs(bytes) {
			bytes, at = change, points[i].At
		}
	}
	return bytes, at
}

// localMinima keeps the least reading of each of at most `windows` windows.
func localMinima(points []Point) []Point {
	n := min(windows, len(points)/leastWindow)
	minima := make([]Point, 0, n)
	for w := range n {
		part := points[w*len(points)/n : (w+1)*len(points)/n]
		least := part[0]
		for _, p := range part {
			if p.Bytes < least.Bytes {
				least = p
			}
		}
		minima = append(minima, least)
	}
	return minima
}

// values drops the times.
func values(points []Point) []float64 {
	v := make([]float64, len(points))
	for i, p := range points {
		v[i] = p.Bytes
	}
	return v
}

// median of the values, which it leaves in their order; 0 for none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := append([]float64(nil), values...)
	sort.Float64s(sorted)
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// deviation is the median absolute deviation, scaled to a normal distribution's sigma.
func deviation(values []float64) float64 {
	centre := median(values)
	distances := make([]float64, len(values))
	for i, v := range values {
		distances[i] = math.Abs(v - centre)
	}
	return 1.4826 * median(distances)
}
