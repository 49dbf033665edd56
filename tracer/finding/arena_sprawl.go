package finding

import (
	"fmt"

	"memtrace/tracer/recording"
)

// sprawlArenas is the number of thread arenas from which a cap can help: with two arenas
// there is nothing to cap.
const sprawlArenas = 3

// suggestedCap is the arena cap that is advised: the main thread keeps its own arena and
// the others share one.
const suggestedCap = 2

// arenaSprawl says that the retention is spread over many thread arenas, so that an arena
// cap is the lever.
func arenaSprawl(rec *recording.Recording) []recording.Finding {
	if rec.Heap == nil {
		return nil
	}
	r := retention(rec.Heap)
	severity, found := r.severity()
	if !found || r.holders < sprawlArenas || r.freeThreads < r.freeMain {
		return nil
	}
	return []recording.Finding{{
		Kind:     "arena-sprawl",
		Severity: severity,
		Subject:  "heap",
		Summary: fmt.Sprintf("%s of the free resident memory lies in %s; the largest holds %s%s",
			percent(share(r.freeThreads, r.free())), count(r.holders, "thread arena"), size(r.largest.FreeResidentBytes), makers(rec)),
		Evidence: map[string]float64{
			"thread_arenas":              float64(r.holders),
			"arenas":                     float64(len(rec.Heap.Arenas)),
			"arena_limit":                float64(rec.Heap.Limits.ArenaLimit),
			"thread_free_resident_bytes": float64(r.freeThreads),
			"main_free_resident_bytes":   float64(r.freeMain),
		},
		Next: sprawlAdvice(rec),
	}}
}

// makers says who made most of the arenas that were made while traced.
func makers(rec *recording.Recording) string {
	if rec.Arenas == nil || len(rec.Arenas.Created) == 0 {
		return ""
	}
	made := map[string]int{}
	most := ""
	for _, e := range rec.Arenas.Created {
		name := callerName(e.Stack)
		made[name]++
		if made[name] > made[most] {
			most = name
		}
	}
	return fmt.Sprintf("; %s made while traced, %d of them by threads in %s", count(len(rec.Arenas.Created), "arena"), made[most], most)
}

// sprawlAdvice advises the cap, and warns where threads already wait for arenas.
func sprawlAdvice(rec *recording.Recording) string {
	advice := fmt.Sprintf("start the process with GLIBC_TUNABLES=glibc.malloc.arena_max=%d and compare with `memtrace diff`", suggestedCap)
	if rec.Locks == nil {
		return advice + "; watch the locks, because more threads will share each arena"
	}
	for _, lock := range rec.Locks.Locks {
		if lock.Kind == "arena" && lock.Waits > 0 {
			return advice + "; threads already wait for arena locks now and then, so compare the lock waits too"
		}
	}
	return advice
}
