package tracer

import (
	"fmt"
	"maps"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memtrace/internal/workload"
	"memtrace/tracer/recording"
)

// lockCounts is what a workload counts at one of its words.
type lockCounts struct {
	Waits, EAgain, Timeouts, Interrupted, Wakes, EmptyWakes, Woken, Requeued, Handoffs uint64
}

func countsOf(l recording.Lock) lockCounts {
	return lockCounts{l.Waits, l.EAgain, l.Timeouts, l.Interrupted, l.Wakes, l.EmptyWakes, l.Woken, l.Requeued, l.Handoffs}
}

// toldWords reads the lines "word NAME ADDRESS …" of a workload.
func toldWords(t *testing.T, p *workload.Process, count int) (told map[string]lockCounts, names map[recording.Address]string) {
	t.Helper()
	told, names = map[string]lockCounts{}, map[recording.Address]string{}
	for range count {
		var c lockCounts
		var name, address string
		line := p.Expect(t, "word ")
		if _, err := fmt.Sscan(line, &name, &address, &c.Waits, &c.EAgain, &c.Timeouts, &c.Interrupted, &c.Wakes, &c.EmptyWakes, &c.Woken, &c.Requeued, &c.Handoffs); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		number, err := strconv.ParseUint(address, 0, 64)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		told[name], names[recording.Address(number)] = c, name
	}
	return told, names
}

// TestFutexCounts compares each word's figures with those of a program that counts what its
// own futex calls of every kind return.
func TestFutexCounts(t *testing.T) {
	for _, exact := range []bool{true, false} {
		t.Run(fmt.Sprintf("exact %v", exact), func(t *testing.T) {
			p := workload.Start(t, workload.Build(t, "futexes.c"))
			p.Expect(t, "ready")
			s := startSession(t, Options{PID: p.PID(), Probes: []string{"lock"}, Exact: exact, Round: "none"})
			p.Say(t, "go")
			const words = 14
			told, names := toldWords(t, p, words)
			p.Expect(t, "done")
			rec := finishSession(t, s)
			// The threads that sleep to the end have not returned from their waits.
			for _, name := range []string{"early", "late"} {
				counts := told[name]
				counts.Waits++
				told[name] = counts
			}
			// A kernel without the newer calls leaves their word alone.
			maps.DeleteFunc(told, func(_ string, c lockCounts) bool { return c == lockCounts{} })
			got := map[string]lockCounts{}
			for _, lock := range rec.Locks.Locks {
				if name, known := names[lock.Address]; known {
					got[name] = countsOf(lock)
					checkLock(t, name, lock)
				}
			}
			if diff := cmp.Diff(told, got); diff != "" {
				t.Errorf("words (-program +memtrace):\n%s", diff)
			}
			checkLosses(t, rec)
			if rec.Losses.LocksLost != 0 || rec.Locks.Withheld != "" {
				t.Errorf("lost %d, withheld %q", rec.Losses.LocksLost, rec.Locks.Withheld)
			}
		})
	}
}

// checkLock looks at what must be true of a lock whatever happened at it.
func checkLock(t *testing.T, name string, l recording.Lock) {
	t.Helper()
	var waits uint64
	var waitNS int64
	for _, thread := range l.Threads {
		waits += thread.Waits
		waitNS += thread.WaitNS
	}
	if name != "from" && (waits != l.Waits || waitNS != l.WaitNS.Total) {
		t.Errorf("%s: threads waited %d times and %d ns, the lock says %d and %d", name, waits, waitNS, l.Waits, l.WaitNS.Total)
	}
	if l.WaitNS.Max > l.WaitNS.Total || l.Waits > 0 && l.WaitNS.Total <= 0 {
		t.Errorf("%s: waits of %+v", name, l.WaitNS)
	}
	// Who waits for several words stands in no queue.
	if name != "vector" && l.Waits > 0 && (l.QueueMax < 1 || l.BusyFraction <= 0) {
		t.Errorf("%s: at most %d slept, for %v of the time", name, l.QueueMax, l.BusyFraction)
	}
	if wantWaiting := name == "early" || name == "late"; wantWaiting != (l.Waiting == 1) {
		t.Errorf("%s: %d wait at the end", name, l.Waiting)
	}
	if l.HandoffsEffective+l.HandoffsFutile > l.Handoffs {
		t.Errorf("%s: %d handoffs, %d of them effective and %d futile", name, l.Handoffs, l.HandoffsEffective, l.HandoffsFutile)
	}
}
