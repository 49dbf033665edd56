package output

import (
	"cmp"
	"fmt"
	"strings"

	"memtrace/tracer/recording"
)

// textLocks writes what threads slept on, the worst first, and for the worst where they
// wait, who wakes them, and in what order.
func textLocks(p *page, rec *recording.Recording) {
	l := rec.Locks
	if l == nil {
		return
	}
	p.heading("Locks: only blocked threads are seen, a lock that is taken at once never enters the kernel")
	if len(l.Locks) == 0 {
		p.line("  no thread waited for another")
		return
	}
	textFutexCalls(p, l)
	titles := []column{{"lock", false}, {"kind", false}, {"waits", true}, {"p50", true}, {"p99", true}, {"waited", true},
		{"handoffs", true}, {"queue", true}, {"max", true}, {"threads", true}}
	var rows [][]string
	for i, lock := range l.Locks {
		if i == p.top {
			break
		}
		rows = append(rows, []string{clip(printable(lockName(lock)), 28), lock.Kind, countText(lock.Waits), durationText(lock.WaitNS.P50),
			durationText(lock.WaitNS.P99), durationText(lock.WaitNS.Total), countText(lock.Handoffs), figures(lock.QueueMean),
			countText(lock.QueueMax), fmt.Sprint(len(lock.Threads))})
	}
	p.table(titles, rows)
	p.more(len(l.Locks)+l.Dropped, "lock")
	if worst := l.Locks[0]; !worst.Parked() && worst.Waits > 0 {
		p.worstLock(worst, l.Chains, rec.Session.Exact)
	}
}

// textFutexCalls sums the calls up by what became of them.
func textFutexCalls(p *page, l *recording.Locks) {
	c := l.Calls
	text := fmt.Sprintf("%s waits (%s returned at once, %s timed out), %s wakes (%s found nobody)",
		countText(c.Waits), countText(c.EAgain), countText(c.Timeouts), countText(c.Wakes), countText(c.EmptyWakes))
	if c.Requeues > 0 {
		text += fmt.Sprintf(", %s requeues", countText(c.Requeues))
	}
	if l.Estimated {
		text += "; the probes were out now and then, figures are scaled"
	}
	p.paragraph("  ", text)
	if l.Withheld != "" {
		p.paragraph("  ", "no verdict on convoys: "+l.Withheld)
	}
}

// lockName is what a lock is called: its name, else its address.
func lockName(lock recording.Lock) string {
	if lock.Name == "" {
		return lock.Address.String()
	}
	return lock.Name
}

// mostLockPlaces is how many stacks of waiters and of wakers are shown of the worst lock.
const mostLockPlaces = 3

// worstLock writes the details of one lock. Unless the trace is exact, the stacks of a busy
// lock are those of a sample of its calls, and what they stand for is an estimate.
func (p *page) worstLock(lock recording.Lock, chains []recording.Chain, exact bool) {
	about := "about "
	if exact {
		about = ""
	}
	p.line("")
	p.line("  %s", p.bold(clip(printable(fmt.Sprintf("%s, %s at %s", lockName(lock), lock.Kind, lock.Address)), pageWidth-2)))
	p.paragraph("      ", lockStory(lock))
	for i, waiter := range lock.Waiters {
		if i == mostLockPlaces {
			break
		}
		p.line("      waits %s%s times, %s in all:", about, countText(waiter.Waits), durationText(waiter.WaitNS))
		for _, f := range waiter.Stack {
			p.frame(f)
		}
	}
	for i, waker := range lock.Wakers {
		if i == mostLockPlaces {
			break
		}
		p.line("      wakes others %s%s times:", about, countText(waker.Wakes))
		for _, f := range waker.Stack {
			p.frame(f)
		}
	}
	if chain, found := chainOf(lock, chains); found {
		where := ""
		if chain.Lock != lock.Address {
			where = "last at " + printable(cmp.Or(chain.Name, chain.Lock.String())) + ", a "
		}
		p.paragraph("      ", where+chainText(chain))
	}
}

// chainOf finds the lock's longest relay, else the longest of all: a fair lock has a word
// for each waiter, and its relays go through all of them.
func chainOf(lock recording.Lock, chains []recording.Chain) (recording.Chain, bool) {
	for _, chain := range chains {
		if chain.Lock == lock.Address {
			return chain, true
		}
	}
	if len(chains) > 0 {
		return chains[0], true
	}
	return recording.Chain{}, false
}

// lockStory says in a sentence how the lock was handed on, and what its holders did.
func lockStory(lock recording.Lock) string {
	parts := []string{fmt.Sprintf("a thread slept on it for %s of the time", percentText(lock.BusyFraction))}
	if lock.Handoffs > 0 {
		parts = append(parts, fmt.Sprintf("handed on %s times in %s half the times at most, %s in vain",
			countText(lock.Handoffs), durationText(lock.HandoffNS.P50), percentText(share(lock.HandoffsFutile, lock.Handoffs))))
	}
	if hold := lock.Hold; hold.Count > 0 && hold.Total > 0 {
		part := func(ns int64) string { return percentText(float64(ns) / float64(hold.Total)) }
		parts = append(parts, fmt.Sprintf("held for %s (p50): %s on a CPU, %s asleep, %s runnable",
			durationText(hold.P50), part(hold.OnCPU), part(hold.Asleep), part(hold.Preempted)))
	}
	if lock.Longest != nil {
		parts = append(parts, fmt.Sprintf("never free of sleepers for %s, with %s between %s",
			durationText(lock.Longest.DurationNS), plural(lock.Longest.Handoffs, "handoff"), plural(lock.Longest.Wakees, "thread")))
	}
	if lock.Owner != nil {
		parts = append(parts, fmt.Sprintf("held now by %s (tid %d)", printable(lock.Owner.Name), lock.Owner.TID))
	}
	return strings.Join(parts, "; ")
}

// chainText draws a relay as a line of thread names.
func chainText(chain recording.Chain) string {
	names := make([]string, len(chain.Threads))
	for i, name := range chain.Threads {
		names[i] = printable(name)
		if (name == "" || sameNames(chain.Threads)) && i < len(chain.TIDs) {
			names[i] = fmt.Sprint(chain.TIDs[i])
		}
	}
	text := strings.Join(names, " → ")
	if chain.Length >= uint64(len(names)) {
		text = "… " + text
	}
	return fmt.Sprintf("relay of %s in %s: %s", plural(chain.Length, "handoff"), durationText(chain.DurationNS), text)
}

// sameNames tells whether the threads cannot be told apart by name.
func sameNames(names []string) bool {
	for _, name := range names {
		if name != names[0] {
			return false
		}
	}
	return true
}
