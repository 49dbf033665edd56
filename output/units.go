package output

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// sizeText writes bytes in human units, three significant figures: "1.25 MiB", "812 B".
func sizeText(bytes float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	unit := 0
	for math.Abs(bytes) >= 999.5 && unit < len(units)-1 {
		bytes /= 1024
		unit++
	}
	if unit == 0 && bytes == math.Trunc(bytes) {
		return strconv.FormatFloat(bytes, 'f', 0, 64) + " B"
	}
	return figures(bytes) + " " + units[unit]
}

// bytesText is sizeText for a count of bytes.
func bytesText(bytes uint64) string { return sizeText(float64(bytes)) }

// figures keeps three significant figures of a number below 1000.
func figures(value float64) string {
	switch size := math.Abs(value); {
	case size < 9.995:
		return strconv.FormatFloat(value, 'f', 2, 64)
	case size < 99.95:
		return strconv.FormatFloat(value, 'f', 1, 64)
	}
	return strconv.FormatFloat(value, 'f', 0, 64)
}

// countText writes a count in full, its thousands parted: "1,234,567".
func countText(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	var b strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}

// rateText writes something per second: "12,300/s", "0.25/s".
func rateText(perSecond float64) string {
	if perSecond >= 100 || perSecond == 0 {
		return countText(uint64(math.Round(perSecond))) + "/s"
	}
	return figures(perSecond) + "/s"
}

// durationText writes nanoseconds in human units, three significant figures: "3.20 ms".
func durationText(ns int64) string {
	value := float64(ns)
	switch size := math.Abs(value); {
	case ns == 0:
		return "0"
	case size < 999.5:
		return fmt.Sprintf("%d ns", ns)
	case size < 999.5e3:
		return figures(value/1e3) + " µs"
	case size < 999.5e6:
		return figures(value/1e6) + " ms"
	case size < 120e9:
		return figures(value/1e9) + " s"
	}
	return time.Duration(ns).Round(time.Second).String()
}

// percentText writes a fraction: "3.1 %", "58 %", "< 0.1 %".
func percentText(fraction float64) string {
	percent := fraction * 100
	switch {
	case percent == 0:
		return "0 %"
	case math.Abs(percent) < 0.1:
		return "< 0.1 %"
	case math.Abs(percent) < 9.95:
		return strconv.FormatFloat(percent, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(percent, 'f', 0, 64) + " %"
}

// share is part of whole as a fraction, 0 when there is no whole.
func share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
