package finding

import (
	"fmt"
	"strings"

	"memtrace/tracer/recording"
)

// What is worth a word: a fifth of a thread lost to waiting, by waits long enough that the
// cost of sleeping and waking does not explain them.
const (
	contendedSleepers = 0.2
	severeSleepers    = 1.0
	contendedWaits    = 20
	contendedWaitNS   = 200_000
	contendedFraction = 0.2 // of the trace in which somebody sleeps there
)

// lockContention says that one long holder keeps the others waiting.
func lockContention(rec *recording.Recording) []recording.Finding {
	found := []recording.Finding{}
	for _, c := range contentions(rec) {
		if c.lock.Kind == "arena" || c.isConvoy() || !c.isContended() || told(found, c.subject()) {
			continue
		}
		severity := recording.Medium
		if c.sleepers >= severeSleepers {
			severity = recording.High
		}
		found = append(found, recording.Finding{
			Kind:     "lock-contention",
			Severity: severity,
			Subject:  c.subject(),
			Summary: fmt.Sprintf("%s waited %d times, half of them longer than %s; %s slept at the lock on average",
				count(c.members, "thread"), c.lock.Waits, span(c.lock.WaitNS.P50), threadsOf(c.sleepers)),
			Evidence: c.evidence(),
			Next:     c.contentionAdvice(),
		})
	}
	return found
}

// contentionAdvice names what would help.
func (c contention) contentionAdvice() string {
	switch {
	case isInterpreterLock(c.lock):
		return "only one thread at a time runs Python code: run several processes, or move the work into calls that release the lock"
	case c.lock.Kind == "semaphore":
		return "let more in at once, or shorten what is done inside: " + c.holder()
	}
	return "shorten what is done under the lock, or give readers a copy: " + c.holder()
}

// told tells whether the object has its finding already: a read-write lock has several words.
func told(found []recording.Finding, subject string) bool {
	object, _, _ := strings.Cut(subject, "+0x")
	for _, f := range found {
		if other, _, _ := strings.Cut(f.Subject, "+0x"); other == object {
			return true
		}
	}
	return false
}

// isContended tells whether threads lose time at the lock in long waits.
func (c contention) isContended() bool {
	return c.members >= 2 && c.lock.Waits >= contendedWaits && c.sleepers >= contendedSleepers &&
		c.lock.BusyFraction >= contendedFraction && c.lock.WaitNS.P50 >= contendedWaitNS
}

// threadsOf writes a mean number of threads: "0.4 threads".
func threadsOf(mean float64) string { return figure(mean) + " threads" }
