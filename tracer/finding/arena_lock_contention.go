package finding

import (
	"fmt"
	"time"

	"memtrace/tracer/recording"
)

// An arena's lock is held for less than a microsecond: threads that wait for it lose time
// by sleeping and waking, many times a second. A thousand waits a second cost a hundredth
// of a CPU; a twentieth of a thread lost is worth a word.
const (
	arenaWaitsPerSecond = 1000
	arenaSleepers       = 0.05
	severeArenaSleepers = 0.5
)

// arenaLockContention says that the contended lock is an arena's: threads share arenas.
func arenaLockContention(rec *recording.Recording) []recording.Finding {
	var worst contention
	var waits, calls, waitNS float64
	arenas := 0
	for _, c := range contentions(rec) {
		if c.lock.Kind != "arena" {
			continue
		}
		arenas++
		waits += float64(c.lock.Waits)
		calls += float64(c.lock.Waits + c.lock.EAgain)
		waitNS += float64(c.lock.WaitNS.Total)
		if worst.lock.Waits == 0 || c.sleepers > worst.sleepers {
			worst = c
		}
	}
	seconds := float64(rec.Session.DurationNS) / float64(time.Second)
	if arenas == 0 || calls/seconds < arenaWaitsPerSecond && waitNS/1e9/seconds < arenaSleepers {
		return nil
	}
	severity := recording.Medium
	if waitNS/1e9/seconds >= severeArenaSleepers {
		severity = recording.High
	}
	evidence := worst.evidence()
	evidence["arenas"] = float64(arenas)
	evidence["arena_waits"] = waits
	evidence["arena_waits_per_second"] = calls / seconds
	evidence["arena_wait_ns"] = waitNS
	return []recording.Finding{{
		Kind:     "arena-lock-contention",
		Severity: severity,
		Subject:  worst.subject(),
		Summary: fmt.Sprintf("threads asked %.0f times a second for the lock of %s that another held, and slept there for %s in all",
			calls/seconds, count(arenas, "arena"), span(int64(waitNS))),
		Evidence: evidence,
		Next:     arenaAdvice(rec),
	}}
}

// arenaAdvice names the lever: a cap where there is one, else the sharing.
func arenaAdvice(rec *recording.Recording) string {
	if rec.Heap != nil && rec.Heap.Limits.ArenaMax > 0 {
		return fmt.Sprintf("raise the cap on arenas (arena_max is %d), or allocate less while many threads run; compare with `memtrace diff`", rec.Heap.Limits.ArenaMax)
	}
	return "more threads allocate than there are arenas: allocate less in the busiest sites, keep buffers for each thread, or raise glibc.malloc.arena_max if it is set"
}
