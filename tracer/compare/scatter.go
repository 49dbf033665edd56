package compare

import (
	"math"
	"slices"
)

// mean returns the mean of a series and its standard error. Neighbours that resemble each
// other tell less than independent values: the number of values is reduced by the series'
// autocorrelation at a distance of one.
func mean(values []float64) reading {
	n := float64(len(values))
	if n == 0 {
		return reading{}
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	average := sum / n
	if n < 3 {
		return reading{value: average}
	}
	squares, products := 0.0, 0.0
	for i, v := range values {
		squares += (v - average) * (v - average)
		if i > 0 {
			products += (v - average) * (values[i-1] - average)
		}
	}
	if squares == 0 {
		return reading{value: average}
	}
	const mostAlike = 0.9
	alike := min(max(0, products/squares), mostAlike)
	independent := n * (1 - alike) / (1 + alike)
	return reading{average, math.Sqrt(squares / (n - 1) / max(1, independent))}
}

// level returns the median of a series and, as its standard error, the scatter of the
// single values around it: a level is what one look at the process would show.
func level(values []float64) reading {
	if len(values) == 0 {
		return reading{}
	}
	middle := median(values)
	distances := make([]float64, len(values))
	for i, v := range values {
		distances[i] = math.Abs(v - middle)
	}
	const toStandardDeviation = 1.4826 // of a normal distribution, from its median distance
	return reading{middle, toStandardDeviation * median(distances)}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// perSecond makes a rate of a count; its error is that of counting independent events.
func perSecond(count, seconds float64) reading {
	return reading{count / seconds, math.Sqrt(max(0, count)) / seconds}
}

// scaled scales a quantity's error by that of the count it sums over.
func scaled(value, count float64) reading {
	if count <= 0 {
		return reading{value: value}
	}
	return reading{value, math.Abs(value) / math.Sqrt(count)}
}
