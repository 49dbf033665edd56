package finding

import (
	"fmt"
	"time"

	"memtrace/tracer/recording"
)

// A futex call that does nothing costs about a microsecond of CPU time, its probe aside: ten
// thousand a second are a hundredth of a CPU, a hundred thousand a tenth.
const (
	stormCalls       = 10_000 // futile calls a second
	severeStormCalls = 100_000
	stormFraction    = 0.4 // of all futex calls
)

// futexStorm says that most futex calls return at once.
func futexStorm(rec *recording.Recording) []recording.Finding {
	if rec.Locks == nil || rec.Session.DurationNS <= 0 {
		return nil
	}
	calls := rec.Locks.Calls
	seconds := float64(rec.Session.DurationNS) / float64(time.Second)
	futile, all := calls.EAgain+calls.EmptyWakes, calls.Waits+calls.Wakes
	rate := float64(futile) / seconds
	if rate < stormCalls || share(futile, all) < stormFraction {
		return nil
	}
	severity := recording.Medium
	if rate >= severeStormCalls {
		severity = recording.High
	}
	return []recording.Finding{{
		Kind:     "futex-storm",
		Severity: severity,
		Subject:  stormSubject(rec.Locks),
		Summary: fmt.Sprintf("%s of the futex calls did nothing, %.0f a second: %.0f waits that returned at once, %.0f wakes that found nobody",
			percent(share(futile, all)), rate, float64(calls.EAgain)/seconds, float64(calls.EmptyWakes)/seconds),
		Evidence: map[string]float64{
			"futile_calls_per_second": rate,
			"futile_fraction":         share(futile, all),
			"eagain":                  float64(calls.EAgain),
			"empty_wakes":             float64(calls.EmptyWakes),
			"waits":                   float64(calls.Waits),
			"wakes":                   float64(calls.Wakes),
			"slept":                   float64(calls.Slept),
		},
		Next: "many threads reach for a lock that is held for an instant: take it less often, batch what is done under it, or give each thread its own part",
	}}
}

// stormSubject is the lock with the most futile calls.
func stormSubject(locks *recording.Locks) string {
	var most uint64
	subject := "futex calls"
	for _, lock := range locks.Locks {
		if futile := lock.EAgain + lock.EmptyWakes; futile > most {
			most = futile
			subject = contention{lock: lock}.subject()
		}
	}
	return subject
}
