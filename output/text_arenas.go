package output

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"memtrace/tracer/recording"
)

// textArenas writes who made glibc's arenas and why, who was given one that was there, what
// malloc_trim did, and which frees raised the mmap threshold.
func textArenas(p *page, rec *recording.Recording) {
	a := rec.Arenas
	if a == nil || len(a.Created)+len(a.Reused)+len(a.Trims)+len(a.Thresholds) == 0 && a.HeapsGrown+a.HeapsShrunk == 0 {
		return
	}
	p.heading("Arenas")
	text := fmt.Sprintf("%s made", plural(uint64(len(a.Created)), "arena"))
	if a.Limit > 0 {
		text += fmt.Sprintf(" (at most %d)", a.Limit)
	}
	text += fmt.Sprintf(", %s given to another thread; heaps grew %s times and shrank %s times",
		countText(uint64(len(a.Reused))), countText(a.HeapsGrown), countText(a.HeapsShrunk))
	if a.EventsDropped > 0 {
		text += fmt.Sprintf("; %s beyond these not listed", plural(a.EventsDropped, "event"))
	}
	p.paragraph("  ", text)
	p.arenaEvents(append(arenaPlaces("made", a.Created), arenaPlaces("given again", a.Reused)...))
	p.trims(a.Trims)
	p.thresholds(a.Thresholds)
}

// arenaPlace is a place in the code that arenas were made or given from, and why.
type arenaPlace struct {
	what, cause, place string
	count              int
	threads            []string
	firstNS            int64
}

// arenaPlaces groups events by the place they come from, the most frequent first.
func arenaPlaces(what string, events []recording.ArenaEvent) []*arenaPlace {
	var places []*arenaPlace
	known := map[string]*arenaPlace{}
	for _, e := range events {
		key := e.Cause + "\x00" + callersText(e.Stack)
		place := known[key]
		if place == nil {
			place = &arenaPlace{what: what, cause: e.Cause, place: callersText(e.Stack), firstNS: e.TimeNS}
			known[key] = place
			places = append(places, place)
		}
		place.count++
		if !slices.Contains(place.threads, e.Thread) {
			place.threads = append(place.threads, e.Thread)
		}
	}
	slices.SortStableFunc(places, func(x, y *arenaPlace) int { return cmp.Compare(y.count, x.count) })
	return places
}

// arenaEvents writes where arenas were made or given again.
func (p *page) arenaEvents(places []*arenaPlace) {
	if len(places) == 0 {
		return
	}
	var rows [][]string
	for i, place := range places {
		if i == p.top {
			break
		}
		rows = append(rows, []string{place.what, fmt.Sprint(place.count), durationText(place.firstNS), place.cause,
			clip(printable(strings.Join(place.threads, ", ")), 20), clip(printable(place.place), 40)})
	}
	p.table([]column{{"arena", false}, {"times", true}, {"first after", true}, {"cause", false}, {"threads", false}, {"by", false}}, rows)
	p.more(len(places), "place")
}

// trims writes the calls of malloc_trim.
func (p *page) trims(trims []recording.Trim) {
	if len(trims) == 0 {
		return
	}
	var rows [][]string
	for i, t := range trims {
		if i == p.top {
			break
		}
		gone := uint64(max(0, int64(t.RSSBeforeBytes)-int64(t.RSSAfterBytes)))
		rows = append(rows, []string{"malloc_trim", durationText(t.TimeNS), durationText(t.DurationNS), bytesText(gone), fmt.Sprint(t.Waiters),
			clip(printable(t.Thread), 15), clip(printable(callersText(t.Stack)), 40)})
	}
	p.table([]column{{"call", false}, {"after", true}, {"took", true}, {"returned", true}, {"waits", true}, {"thread", false}, {"by", false}}, rows)
	p.more(len(trims), "call")
}

// thresholds writes the frees that raised the mmap threshold.
func (p *page) thresholds(rises []recording.ThresholdRise) {
	for i, r := range rises {
		if i == p.top {
			break
		}
		p.paragraph("  ", fmt.Sprintf("the mmap threshold rose from %s to %s after %s: a free by %s",
			bytesText(r.BeforeBytes), bytesText(r.AfterBytes), durationText(r.TimeNS), printable(callersText(r.Stack))))
	}
	p.more(len(rises), "rise")
}

// callersText names the first two functions of a stack, the leaf first.
func callersText(stack recording.Stack) string {
	var named []string
	for _, f := range stack {
		if f.Function == "" && len(named) > 0 {
			continue
		}
		if named = append(named, frameName(f)); len(named) == 2 {
			break
		}
	}
	return strings.Join(named, " < ")
}
