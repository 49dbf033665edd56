package tracer

import (
	"math/bits"
	"slices"
)

// tally counts values. As long as there are few different ones it keeps them as they are, so
// that percentiles are exact; then it rounds them to tallyBits binary digits, which is half a
// percent off at most.
type tally struct {
	counts map[uint64]uint64
	total  uint64
	coarse bool
}

const (
	tallyExact = 2048 // different values that are kept as they are
	tallyBits  = 8
)

func (t *tally) add(value uint64) {
	if t.counts == nil {
		t.counts = map[uint64]uint64{}
	}
	if t.coarse {
		value = coarsened(value)
	}
	t.counts[value]++
	t.total++
	if !t.coarse && len(t.counts) > tallyExact {
		t.coarsen()
	}
}

// coarsen rounds the values that are there, and all that come.
func (t *tally) coarsen() {
	t.coarse = true
	exact := t.counts
	t.counts = map[uint64]uint64{}
	for value, count := range exact {
		t.counts[coarsened(value)] += count
	}
}

// coarsened keeps the first tallyBits digits of a value and puts it into the middle of those
// that share them.
func coarsened(value uint64) uint64 {
	drop := bits.Len64(value) - tallyBits
	if drop <= 0 {
		return value
	}
	return value>>drop<<drop | 1<<drop>>1
}

// percentiles returns, for each share in ascending order, the smallest value that at least
// that share of the values does not exceed; zeros when there are no values.
func (t *tally) percentiles(shares ...float64) []float64 {
	values := make([]uint64, 0, len(t.counts))
	for value := range t.counts {
		values = append(values, value)
	}
	slices.Sort(values)
	found := make([]float64, len(shares))
	var seen uint64
	next := 0
	for _, value := range values {
		seen += t.counts[value]
		for next < len(shares) && float64(seen) >= shares[next]*float64(t.total) {
			found[next] = float64(value)
			next++
		}
	}
	return found
}

// sizeClass returns the smallest k with value <= 2^k, as size_class of bpf/power.h does.
func sizeClass(value uint64) int {
	if value <= 1 {
		return 0
	}
	return min(bits.Len64(value-1), 63)
}
