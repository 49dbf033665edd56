package finding

import "fmt"

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// size writes bytes as a person reads them in a sentence: "1.2 GiB", "44 MiB", "812 KiB".
func size(bytes uint64) string {
	value := float64(bytes)
	switch {
	case value >= gib:
		return figure(value/gib) + " GiB"
	case value >= mib:
		return figure(value/mib) + " MiB"
	case value >= kib:
		return figure(value/kib) + " KiB"
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// figure keeps one decimal place below ten and none above.
func figure(value float64) string {
	if value < 9.95 {
		return fmt.Sprintf("%.1f", value)
	}
	return fmt.Sprintf("%.0f", value)
}

// percent writes a fraction as "58 %".
func percent(fraction float64) string { return fmt.Sprintf("%.0f %%", fraction*100) }

// count writes a number of things: count(1, "arena") is "1 arena", count(3, "arena") "3 arenas".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// share is part of whole, 0 when there is no whole.
func share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
