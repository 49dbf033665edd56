package finding

import (
	"fmt"
	"time"

	"memtrace/tracer/recording"
)

// What is worth a word: on average half a thread that could run and may not, which is a
// good part of what the process asks for, by threads that are preempted rather than sleep.
const (
	queuedThreads       = 0.5
	severeQueuedThreads = 2
	queuedFraction      = 0.25 // of the time that its threads run or could run
	preemptions         = 20   // a second
)

// cpuContention says that threads are preempted while runnable and no lock is queued on:
// what looks like waiting for each other is a lack of processors.
func cpuContention(rec *recording.Recording) []recording.Finding {
	if rec.Scheduling == nil || rec.Session.DurationNS <= 0 || locksQueuedOn(rec) {
		return nil
	}
	var cpu, queued int64
	var voluntary, nonvoluntary uint64
	threads := 0
	for _, t := range rec.Scheduling.Threads {
		cpu += t.CPUNS
		queued += t.RunnableWaitNS
		voluntary += t.Voluntary
		nonvoluntary += t.Nonvoluntary
		if float64(t.RunnableWaitNS) > 0.05*float64(rec.Session.DurationNS) {
			threads++
		}
	}
	mean := float64(queued) / float64(rec.Session.DurationNS)
	fraction := float64(queued) / float64(max(cpu+queued, 1))
	rate := float64(nonvoluntary) / (float64(rec.Session.DurationNS) / float64(time.Second))
	if mean < queuedThreads || fraction < queuedFraction || rate < preemptions || nonvoluntary < voluntary {
		return nil
	}
	severity := recording.Medium
	if mean >= severeQueuedThreads {
		severity = recording.High
	}
	return []recording.Finding{{
		Kind:     "cpu-contention",
		Severity: severity,
		Subject:  "the processors",
		Summary: fmt.Sprintf("%s could run and waited for a processor for %s of that time; %.0f preemptions a second, and no lock is queued on",
			count(threads, "thread"), percent(fraction), rate),
		Evidence: map[string]float64{
			"queued_threads_mean":    mean,
			"runnable_wait_fraction": fraction,
			"runnable_wait_ns":       float64(queued),
			"cpu_ns":                 float64(cpu),
			"voluntary":              float64(voluntary),
			"nonvoluntary":           float64(nonvoluntary),
			"threads":                float64(threads),
		},
		Next: "give the process more processors (or a larger cgroup quota), or run fewer busy threads; changing locks will not help",
	}}
}

// locksQueuedOn tells whether threads of the process wait for each other.
func locksQueuedOn(rec *recording.Recording) bool {
	for _, c := range contentions(rec) {
		if c.isConvoy() || c.isContended() {
			return true
		}
	}
	return len(lockConvoy(rec)) > 0 || len(arenaLockContention(rec)) > 0
}
