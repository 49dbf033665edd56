package finding

import (
	"fmt"

	"memtrace/tracer/recording"
)

// What makes a convoy: threads that come back to the lock find it taken, sleep, and are
// handed it in turn, so that it never drains. A lock that is merely used a lot is often
// free when it is asked for: wakes find nobody, waits return at once.
const (
	convoyMembers    = 3    // threads that take turns
	convoyQueue      = 2    // threads asleep, on average while any are
	convoyEmptyWakes = 0.05 // at most: share of wakes that find nobody
	convoyEAgain     = 0.05 // at most: share of waits that return at once
	convoyRotation   = 8    // turns of each member before the queue drains
	convoyHandoffs   = 100  // fewer say nothing
	convoyFraction   = 0.2  // of the trace
	severeFraction   = 0.5
	longHoldNS       = 3e6 // a lock that is held longer needs no convoy to make threads wait
)

// lockConvoy says that threads hand one lock on in lockstep although it is held only
// briefly. It says nothing when events were lost: a lost wake looks like a lock that drains.
func lockConvoy(rec *recording.Recording) []recording.Finding {
	if rec.Locks == nil || rec.Locks.Withheld != "" {
		return nil
	}
	found := []recording.Finding{}
	for _, c := range contentions(rec) {
		if c.isConvoy() && c.lock.Kind != "arena" {
			found = append(found, c.convoy())
		}
	}
	if len(found) == 0 {
		return relayConvoy(rec)
	}
	return found
}

// isConvoy tells whether the lock carries a convoy for a good part of the trace. A semaphore
// lets several in at once, and an interpreter's lock is given up by the clock: those behind
// them are no convoy.
func (c contention) isConvoy() bool {
	l := c.lock
	return l.Kind != "semaphore" && l.Kind != "condvar" && c.members >= convoyMembers && c.queue >= convoyQueue && l.Handoffs >= convoyHandoffs &&
		c.emptyWakes <= convoyEmptyWakes && c.eagain <= convoyEAgain &&
		l.Rotation >= convoyRotation && l.BusyFraction >= convoyFraction && c.holdNS < longHoldNS
}

// convoy writes the finding.
func (c contention) convoy() recording.Finding {
	l := c.lock
	what, next := c.convoyReason()
	evidence := c.evidence()
	evidence["rotation"] = l.Rotation
	evidence["convoy_fraction"] = l.ConvoyFraction
	severity := recording.Medium
	if l.BusyFraction >= severeFraction {
		severity = recording.High
	}
	return recording.Finding{
		Kind:     "lock-convoy",
		Severity: severity,
		Subject:  c.subject(),
		Summary: fmt.Sprintf("%s hand the lock on in turn, %.0f times a second, with %s asleep on average during %s of the trace; %s",
			count(c.members, "thread"), c.handoffs, figure(c.queue), percent(l.BusyFraction), what),
		Evidence: evidence,
		Next:     next,
	}
}

// convoyReason tells what the time of a turn goes to, and so what would help.
func (c contention) convoyReason() (what, next string) {
	l := c.lock
	held := l.Hold.OnCPU + l.Hold.Asleep + l.Hold.Preempted
	switch {
	case held > 0 && 2*l.Hold.Asleep >= held:
		return fmt.Sprintf("its holders sleep for %s of the %s that they hold it", percent(float64(l.Hold.Asleep)/float64(held)), span(l.Hold.P50)),
			fmt.Sprintf("take what sleeps (input, output, a timer, another lock) out of the locked section: %s", c.holder())
	case 2*l.HandoffsFutile >= l.Handoffs:
		return fmt.Sprintf("it is held for %s at a time on the CPU, and %s of the woken find it taken again", span(l.Hold.P50), percent(share(l.HandoffsFutile, l.Handoffs))),
			fmt.Sprintf("the locked section is the bottleneck: shorten it, or split the lock (%s)", c.holder())
	case l.HandoffNS.P50 >= l.Hold.P50:
		return fmt.Sprintf("handing it on takes %s, longer than it is held (%s)", span(l.HandoffNS.P50), span(l.Hold.P50)),
			fmt.Sprintf("take the lock less often (batch, or a queue for each thread), or use one that spins or barges instead of handing over; %s", c.holder())
	}
	return fmt.Sprintf("it is held for %s at a time", span(l.Hold.P50)),
		fmt.Sprintf("shorten the locked section, or split the lock; %s", c.holder())
}
