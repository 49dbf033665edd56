package trend

import (
	"math"
	"sort"
)

// senSlope returns the Theil–Sen slope of the points in bytes an hour, its 95 % interval,
// and Kendall's z: how many standard deviations the count of rising pairs lies above that
// of a series without a trend. Ties are allowed for in the variance.
func senSlope(points []Point) (slope, low, high, z float64) {
	n := len(points)
	if n < 3 {
		return 0, 0, 0, 0
	}
	slopes := make([]float64, 0, n*(n-1)/2)
	s := 0
	for i := range points {
		for j := i + 1; j < n; j++ {
			hours := (points[j].At - points[i].At).Hours()
			if hours <= 0 {
				continue
			}
			rise := points[j].Bytes - points[i].Bytes
			slopes = append(slopes, rise/hours)
			s += sign(rise)
		}
	}
	if len(slopes) == 0 {
		return 0, 0, 0, 0
	}
	sort.Float64s(slopes)
	spread := math.Sqrt(kendallVariance(values(points)))
	if spread > 0 && s != 0 {
		z = (float64(s) - float64(sign(float64(s)))) / spread
	}
	reach := intervalZ * spread
	last := len(slopes) - 1
	lower := int(math.Floor((float64(len(slopes)) - reach) / 2))
	upper := int(math.Ceil((float64(len(slopes)) + reach) / 2))
	return median(slopes), slopes[max(0, min(lower, last))], slopes[max(0, min(upper, last))], z
}

// kendallVariance is the variance of Kendall's S without a trend, ties included
// (M. G. Kendall, Rank Correlation Methods, 1975).
func kendallVariance(values []float64) float64 {
	n := float64(len(values))
	variance := n * (n - 1) * (2*n + 5)
	sorted := append([]float64(nil), values...)
	sort.Float64s(sorted)
	for i := 0; i < len(sorted); {
		j := i
		for j < len(sorted) && sorted[j] == sorted[i] {
			j++
		}
		t := float64(j - i)
		variance -= t * (t - 1) * (2*t + 5)
		i = j
	}
	return variance / 18
}

// sign is -1, 0 or 1.
func sign(value float64) int {
	switch {
	case value > 0:
		return 1
	case value < 0:
		return -1
	}
	return 0
}
