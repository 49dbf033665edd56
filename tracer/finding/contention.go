package finding

import (
	"fmt"
	"strings"
	"time"

	"memtrace/tracer/recording"
)

// contention is a lock that threads of the process wait for each other at, with what the
// findings on locks ask of it. Times are of the whole trace.
type contention struct {
	lock       recording.Lock
	sleepers   float64 // threads asleep at it, on average over the trace
	queue      float64 // the same over the time in which any slept
	members    int     // threads that slept at it
	handoffs   float64 // a second
	holdNS     int64   // how long a turn lasts on average, without the time its holder was preempted
	emptyWakes float64 // share of the wakes that found nobody
	eagain     float64 // share of the waits that returned at once
}

// selfHanded is the share of wakes, by threads that wait there themselves, from which a
// word of unknown use is taken for a lock: who waits for work is woken by who brings it.
const selfHanded = 0.9

// contentions returns the locks at which threads wait for each other, those of most
// waiting first. Where threads wait for work there is no contention.
func contentions(rec *recording.Recording) []contention {
	if rec.Locks == nil || rec.Session.DurationNS <= 0 {
		return nil
	}
	var found []contention
	for _, lock := range rec.Locks.Locks {
		if lock.Waits > 0 && isLock(lock) {
			found = append(found, contentionOf(lock, rec.Session.DurationNS))
		}
	}
	return found
}

// isLock tells whether a futex word is one that its holder hands on.
func isLock(lock recording.Lock) bool {
	switch lock.Kind {
	case "mutex", "rwlock", "arena", "allocator":
		return true
	case "semaphore", "unknown":
		return wakesByWaiters(lock) >= selfHanded
	}
	return isInterpreterLock(lock)
}

// isInterpreterLock tells whether it is CPython's global interpreter lock: a condition
// variable in the interpreter's static state, on which threads wait only for that lock
// (Python/ceval_gil.c).
func isInterpreterLock(lock recording.Lock) bool {
	return lock.Kind == "condvar" && strings.HasPrefix(lock.Name, "_PyRuntime")
}

// wakesByWaiters is the share of the wakes that came from threads which wait there too.
func wakesByWaiters(lock recording.Lock) float64 {
	var wakes, own uint64
	for _, thread := range lock.Threads {
		wakes += thread.Wakes
		if thread.Waits > 0 {
			own += thread.Wakes
		}
	}
	return share(own, wakes)
}

func contentionOf(lock recording.Lock, durationNS int64) contention {
	duration := float64(durationNS)
	c := contention{
		lock:       lock,
		sleepers:   float64(lock.WaitNS.Total) / duration,
		handoffs:   float64(lock.Handoffs) / duration * float64(time.Second),
		emptyWakes: share(lock.EmptyWakes, lock.Wakes),
		eagain:     share(lock.EAgain, lock.EAgain+lock.Waits),
	}
	c.queue = lock.QueueMean
	if held := lock.Hold.OnCPU + lock.Hold.Asleep; lock.Hold.Count > 0 {
		c.holdNS = held / int64(lock.Hold.Count)
	}
	for _, thread := range lock.Threads {
		if thread.Waits > 0 {
			c.members++
		}
	}
	return c
}

// subject names the lock.
func (c contention) subject() string {
	if isInterpreterLock(c.lock) {
		return "Python's global interpreter lock"
	}
	if c.lock.Name != "" {
		return c.lock.Name
	}
	return fmt.Sprintf("%s at %s", c.lock.Kind, c.lock.Address)
}

// evidence is what every finding on a lock rests on.
func (c contention) evidence() map[string]float64 {
	l := c.lock
	return map[string]float64{
		"waits":                float64(l.Waits),
		"wait_ns":              float64(l.WaitNS.Total),
		"wait_p50_ns":          float64(l.WaitNS.P50),
		"sleepers_mean":        c.sleepers,
		"queue_mean":           c.queue,
		"threads":              float64(c.members),
		"busy_fraction":        l.BusyFraction,
		"handoffs":             float64(l.Handoffs),
		"handoffs_per_second":  c.handoffs,
		"handoffs_futile":      float64(l.HandoffsFutile),
		"handoff_p50_ns":       float64(l.HandoffNS.P50),
		"hold_p50_ns":          float64(l.Hold.P50),
		"hold_on_cpu_ns":       float64(l.Hold.OnCPU),
		"hold_asleep_ns":       float64(l.Hold.Asleep),
		"empty_wakes_fraction": c.emptyWakes,
		"eagain_fraction":      c.eagain,
	}
}

// holder says where the lock is handed on, and so where it is held, for the next step.
func (c contention) holder() string {
	if c.lock.Owner != nil && len(c.lock.Owner.Stack) > 0 {
		return fmt.Sprintf("thread %s holds it in %s", c.lock.Owner.Name, caller(c.lock.Owner.Stack))
	}
	if len(c.lock.Wakers) > 0 {
		return "it is released from " + caller(c.lock.Wakers[0].Stack)
	}
	return "its holder was not seen"
}

// lockCode are the beginnings of the names of functions that belong to locks themselves.
var lockCode = []string{
	"pthread_", "__pthread_", "___pthread_", "__lll_", "lll_", "__GI_", "__futex", "futex", "syscall", "__syscall", "sem_", "__new_sem_",
	"std::sys::", "std::sync::", "std::mutex", "std::unique_lock", "std::lock_guard", "parking_lot", "lock_api", "__gthread",
	"absl::", "runtime.futex", "runtime.lock",
}

// caller names the first function of a stack that is not the lock's own code.
func caller(stack recording.Stack) string {
	for _, frame := range stack {
		if frame.Function != "" && !isLockCode(frame.Function) {
			return frame.Function
		}
	}
	for _, frame := range stack {
		if frame.Module != "" {
			return fmt.Sprintf("%s+%#x", frame.Module, frame.Offset)
		}
	}
	return "a place without a name"
}

func isLockCode(function string) bool {
	for _, start := range lockCode {
		if strings.HasPrefix(function, start) {
			return true
		}
	}
	return false
}

// span writes nanoseconds as a person reads them in a sentence: "3.2 ms", "850 µs".
func span(ns int64) string {
	value := float64(ns)
	switch {
	case value >= 1e9:
		return figure(value/1e9) + " s"
	case value >= 1e6:
		return figure(value/1e6) + " ms"
	case value >= 1e3:
		return figure(value/1e3) + " µs"
	}
	return fmt.Sprintf("%d ns", ns)
}
