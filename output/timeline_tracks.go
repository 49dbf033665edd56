package output

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"

	"memtrace/tracer/recording"
)

// thin takes at most mostTimelineEvents of a list, evenly, and notes how many it leaves out.
func thin[T any](t *timeline, kind string, all []T) []T {
	if len(all) <= mostTimelineEvents {
		return all
	}
	t.thinned[kind] = len(all) - mostTimelineEvents
	kept := make([]T, mostTimelineEvents)
	for i := range kept {
		kept[i] = all[i*len(all)/mostTimelineEvents]
	}
	return kept
}

// rounds adds the rounds, each a slice of its thread or of the process.
func (t *timeline) rounds(r *recording.Rounds) {
	if r == nil {
		return
	}
	for _, round := range thin(t, "rounds", r.Series) {
		start := momentOf(round.StartNS)
		t.slice(round.TID, timelineSlice{name: "round", category: "round", start: start, end: start + momentOf(round.DurationNS), args: map[string]any{
			"index": round.Index, "allocs": round.Allocs, "alloc_bytes": round.AllocBytes,
			"frees": round.Frees, "free_bytes": round.FreeBytes, "cpu_ns": round.CPUNS,
		}})
	}
}

// arenas adds what happened to glibc's arenas.
func (t *timeline) arenas(a *recording.Arenas) {
	if a == nil {
		return
	}
	t.arenaEvents("arena created", a.Created)
	t.arenaEvents("arena reused", a.Reused)
	for _, trim := range thin(t, "trims", a.Trims) {
		start := momentOf(trim.TimeNS)
		t.slice(trim.TID, timelineSlice{name: "malloc_trim", category: "trim", start: start, end: start + momentOf(trim.DurationNS), args: map[string]any{
			"rss_before_bytes": trim.RSSBeforeBytes, "rss_after_bytes": trim.RSSAfterBytes, "returned": trim.Returned,
			"waiters": trim.Waiters, "wait_ns": trim.WaitNS, "caller": callerOf(trim.Stack),
		}})
	}
	for _, rise := range thin(t, "threshold rises", a.Thresholds) {
		t.instant(rise.TID, "arena", "mmap threshold rose", rise.TimeNS, map[string]any{
			"before_bytes": rise.BeforeBytes, "after_bytes": rise.AfterBytes, "caller": callerOf(rise.Stack),
		})
	}
}

func (t *timeline) arenaEvents(kind string, events []recording.ArenaEvent) {
	for _, event := range thin(t, kind, events) {
		t.instant(event.TID, "arena", kind, event.TimeNS, map[string]any{
			"arena": event.Arena.String(), "cause": printable(event.Cause), "caller": callerOf(event.Stack),
		})
	}
}

// callerOf names the innermost function of a stack.
func callerOf(stack recording.Stack) string {
	if len(stack) == 0 {
		return ""
	}
	return printable(frameName(stack[0]))
}

// arenaCount counts the arenas as they are made.
func (t *timeline) arenaCount(rec *recording.Recording) {
	if rec.Arenas == nil {
		return
	}
	count := 0
	if rec.HeapBefore != nil {
		count = len(rec.HeapBefore.Arenas)
	}
	t.counter("arenas", 0, float64(count))
	for i, event := range rec.Arenas.Created {
		if i < mostTimelineEvents {
			t.counter("arenas", event.TimeNS, float64(count+i+1))
		}
	}
}

// course adds what was allocated and released in each slice of the trace, and the live bytes
// of the sites that hold most.
func (t *timeline) course(a *recording.Allocation) {
	if a == nil {
		return
	}
	from := int64(0)
	for _, point := range thin(t, "points of the course", a.Series) {
		if seconds := float64(point.TimeNS-from) / 1e9 * point.Coverage; seconds > 0 {
			t.counter("allocated, bytes/s", from, float64(point.AllocBytes)/seconds)
			t.counter("allocated, calls/s", from, float64(point.Allocs)/seconds)
			t.counter("freed, calls/s", from, float64(point.Frees)/seconds)
		}
		from = point.TimeNS
	}
	const mostSites = 10
	for i, site := range largestLive(a.Sites, mostSites) {
		name := fmt.Sprintf("live bytes %d: %s", i+1, clip(callerOf(site.Stack), longestOnPage))
		for _, point := range thin(t, "points of live bytes", site.LiveSeries) {
			t.counter(name, point.TimeNS, float64(point.LiveBytes))
		}
	}
}

// largestLive lists the sites with a course that hold most at the end.
func largestLive(sites []recording.Site, most int) []*recording.Site {
	var all []*recording.Site
	for i := range sites {
		if sites[i].LiveBytes > 0 && len(sites[i].LiveSeries) > 0 {
			all = append(all, &sites[i])
		}
	}
	slices.SortStableFunc(all, func(a, b *recording.Site) int { return cmp.Compare(b.LiveBytes, a.LiveBytes) })
	return all[:min(most, len(all))]
}

// describe names the process and the threads that something happened on.
func (t *timeline) describe(rec *recording.Recording) {
	names := threadNames(rec)
	about := []timelineEvent{{Name: "process_name", Phase: "M", PID: t.pid, TID: t.pid, Args: map[string]any{"name": printable(path.Base(rec.Target.Command))}}}
	for _, tid := range slices.Sorted(maps.Keys(t.seen)) {
		if names[tid] != "" {
			about = append(about, timelineEvent{Name: "thread_name", Phase: "M", PID: t.pid, TID: tid, Args: map[string]any{"name": names[tid]}})
		}
	}
	t.events = append(about, t.events...)
}

// threadNames lists what the threads are called.
func threadNames(rec *recording.Recording) map[int]string {
	names := map[int]string{}
	name := func(tid int, text string) {
		if names[tid] == "" {
			names[tid] = printable(text)
		}
	}
	if rec.Scheduling != nil {
		for _, thread := range rec.Scheduling.Threads {
			name(thread.TID, thread.Name)
		}
	}
	if rec.Allocation != nil {
		for _, thread := range rec.Allocation.Threads {
			name(thread.TID, thread.Name)
		}
	}
	if rec.Rounds != nil {
		for _, thread := range rec.Rounds.Threads {
			name(thread.TID, thread.Name)
		}
	}
	if rec.Arenas != nil {
		for _, event := range rec.Arenas.Created {
			name(event.TID, event.Thread)
		}
	}
	if rec.Locks != nil {
		for _, chain := range rec.Locks.Chains {
			for i := range min(len(chain.TIDs), len(chain.Threads)) {
				name(chain.TIDs[i], chain.Threads[i])
			}
		}
	}
	return names
}

// about says what was traced, and what is left out.
func (t *timeline) about(rec *recording.Recording) map[string]any {
	findings := []string{}
	for _, f := range rec.Findings {
		findings = append(findings, printable(f.Summary))
	}
	about := map[string]any{
		"command": printable(rec.Target.Command), "started": rec.Session.Started, "duration_ns": rec.Session.DurationNS,
		"memtrace_version": printable(rec.Session.MemtraceVersion), "findings": findings,
	}
	if len(t.thinned) > 0 {
		about["left_out"] = t.thinned
	}
	return about
}
