package compare

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"memtrace/tracer/recording"
)

// siteRate is a site, all its stacks of the same functions summed, per second.
type siteRate struct {
	entry         string
	stack         recording.Stack
	bytes, allocs float64
	live          uint64
	sampled       float64
}

// What a change of a site must come to before it is told.
const (
	leastShare  = 0.001 // of all bytes
	leastChange = 0.10  // of the site's own
)

// siteChanges matches the sites of two recordings and returns those that changed beyond
// chance, the largest change first, and how many did not.
func siteChanges(before, after *recording.Recording) (changes []recording.SiteChange, unchanged int) {
	changes = []recording.SiteChange{}
	was, is := siteRates(before), siteRates(after)
	all := 0.0
	for _, s := range was {
		all += s.bytes
	}
	for _, s := range is {
		all = max(all, s.bytes)
	}
	for key := range union(was, is) {
		a, b := was[key], is[key]
		chance := confidence * math.Hypot(scaled(a.bytes, a.sampled).standard, scaled(b.bytes, b.sampled).standard)
		if difference := math.Abs(b.bytes - a.bytes); difference <= chance || difference < max(leastShare*all, leastChange*a.bytes) {
			unchanged++
			continue
		}
		changes = append(changes, siteChange(a, b))
	}
	slices.SortFunc(changes, func(a, b recording.SiteChange) int {
		x, y := math.Abs(a.AfterPerS-a.BeforePerS), math.Abs(b.AfterPerS-b.BeforePerS)
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return strings.Compare(siteKey(a.Entry, a.Stack), siteKey(b.Entry, b.Stack))
	})
	return changes, unchanged
}

func siteChange(before, after siteRate) recording.SiteChange {
	c := recording.SiteChange{Entry: after.entry, Stack: after.stack, BeforePerS: before.bytes, AfterPerS: after.bytes,
		BeforeCallsPer: before.allocs, AfterCallsPer: after.allocs, BeforeLive: before.live, AfterLive: after.live}
	switch {
	case before.sampled == 0:
		c.Kind = "appeared"
	case after.sampled == 0:
		c.Kind, c.Entry, c.Stack = "vanished", before.entry, before.stack
	case after.bytes > before.bytes:
		c.Kind = "grew"
	default:
		c.Kind = "shrank"
	}
	return c
}

// siteRates sums the sites of a recording by what they are called.
func siteRates(rec *recording.Recording) map[string]siteRate {
	rates := map[string]siteRate{}
	seconds := rec.Session.Duration().Seconds()
	if rec.Allocation == nil || seconds <= 0 {
		return rates
	}
	for i := range rec.Allocation.Sites {
		site := &rec.Allocation.Sites[i]
		key := siteKey(site.Entry, site.Stack)
		sum, known := rates[key]
		if !known {
			sum.entry, sum.stack = site.Entry, site.Stack
		}
		sum.bytes += float64(site.AllocBytes) / seconds
		sum.allocs += float64(site.Allocs) / seconds
		sum.live += site.LiveBytes
		sum.sampled += float64(max(1, site.Sampled))
		rates[key] = sum
	}
	return rates
}

// stackPairs puts the sites of both side by side.
func stackPairs(before, after *recording.Recording) []recording.StackPair {
	was, is := siteRates(before), siteRates(after)
	var pairs []recording.StackPair
	for key := range union(was, is) {
		a, b := was[key], is[key]
		pair := recording.StackPair{Entry: b.entry, Stack: b.stack, Before: a.bytes, After: b.bytes}
		if b.sampled == 0 {
			pair.Entry, pair.Stack = a.entry, a.stack
		}
		pairs = append(pairs, pair)
	}
	slices.SortFunc(pairs, func(a, b recording.StackPair) int {
		return strings.Compare(siteKey(a.Entry, a.Stack), siteKey(b.Entry, b.Stack))
	})
	return pairs
}

func union(a, b map[string]siteRate) map[string]struct{} {
	keys := map[string]struct{}{}
	for key := range a {
		keys[key] = struct{}{}
	}
	for key := range b {
		keys[key] = struct{}{}
	}
	return keys
}

// siteKey is what a site is called in any build: the entry and the functions of its stack.
// A frame without a name counts by its module and offset.
func siteKey(entry string, stack recording.Stack) string {
	var key strings.Builder
	key.WriteString(entry)
	for _, frame := range stack {
		key.WriteByte('\n')
		switch {
		case frame.Function != "":
			key.WriteString(frame.Function)
		case frame.Module != "":
			fmt.Fprintf(&key, "%s+%x", path.Base(frame.Module), frame.Offset)
		default:
			key.WriteString(frame.Unresolved)
		}
	}
	return key.String()
}
