package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"memtrace/tracer"
)

// percentValue is a flag such as "10%", or "off" for none; it holds a fraction, 0 for off.
type percentValue float64

func (v *percentValue) String() string {
	if *v == 0 {
		return "off"
	}
	return strconv.FormatFloat(float64(*v)*100, 'g', 6, 64) + "%"
}

func (v *percentValue) Set(text string) error {
	if text == "off" {
		*v = 0
		return nil
	}
	number, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(text, "%")), 64)
	if err != nil || !(number > 0) || number > 1000 {
		return fmt.Errorf("want a percentage such as 10%%, or off")
	}
	*v = percentValue(number / 100)
	return nil
}

func (v *percentValue) Type() string { return "P" }

// sizeValue is a flag such as "64KiB"; it holds bytes, at least 1.
type sizeValue uint64

var sizeUnits = []struct {
	suffix string
	bytes  float64
}{{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"b", 1}, {"", 1}}

func (v *sizeValue) String() string {
	switch {
	case *v >= 1<<20 && *v%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", *v>>20)
	case *v >= 1<<10 && *v%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", *v>>10)
	}
	return strconv.FormatUint(uint64(*v), 10)
}

func (v *sizeValue) Set(text string) error {
	for _, unit := range sizeUnits {
		digits, found := strings.CutSuffix(strings.ToLower(strings.TrimSpace(text)), unit.suffix)
		if !found {
			continue
		}
		number, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		bytes := math.Round(number * unit.bytes)
		if err != nil || !(bytes >= 1) || bytes > 1<<40 {
			return fmt.Errorf("want a size such as 64KiB")
		}
		*v = sizeValue(bytes)
		return nil
	}
	return fmt.Errorf("want a size such as 64KiB")
}

func (v *sizeValue) Type() string { return "N" }

// probesValue is a list of probe families.
type probesValue []string

func (v *probesValue) String() string { return strings.Join(*v, ",") }

func (v *probesValue) Set(text string) error {
	*v = nil
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(tracer.ProbeNames(), name) {
			return fmt.Errorf("unknown probe %q: want some of %s", name, strings.Join(tracer.ProbeNames(), ","))
		}
		if !slices.Contains(*v, name) {
			*v = append(*v, name)
		}
	}
	return nil
}

func (v *probesValue) Type() string { return "LIST" }
