package output

import (
	"fmt"
	"strings"

	"memtrace/tracer/recording"
)

// htmlLock is one lock of the page.
type htmlLock struct {
	Name, Kind, Address string
	Parked              bool
	Facts               [][2]string
	Waiters, Wakers     []htmlLockSite
	Threads             string
}

// htmlLockSite is a place where threads slept on a lock or woke others.
type htmlLockSite struct {
	Weight string
	Frames []htmlFrame
}

// htmlChain is a relay of threads.
type htmlChain struct {
	Lock, Length, Duration string
	Threads                []string
}

// newLocks lists the locks, as the recording orders them: contended ones first.
func newLocks(rec *recording.Recording, top int) []htmlLock {
	if rec.Locks == nil {
		return nil
	}
	var list []htmlLock
	for i := range rec.Locks.Locks {
		if i == top {
			break
		}
		list = append(list, newLock(&rec.Locks.Locks[i]))
	}
	return list
}

func newLock(l *recording.Lock) htmlLock {
	view := htmlLock{Name: clip(printable(l.Name), longestOnPage), Kind: printable(l.Kind), Address: l.Address.String(), Parked: l.Parked()}
	if view.Name == "" {
		view.Name = view.Address
	}
	fact := func(name, value string) { view.Facts = append(view.Facts, [2]string{name, value}) }
	fact("waits", countText(l.Waits))
	fact("time waited", durationText(l.WaitNS.Total))
	fact("a wait", fmt.Sprintf("half below %s, 99 %% below %s, longest %s", durationText(l.WaitNS.P50), durationText(l.WaitNS.P99), durationText(l.WaitNS.Max)))
	if l.Handoffs > 0 {
		fact("handoffs", fmt.Sprintf("%s, half within %s", countText(l.Handoffs), durationText(l.HandoffNS.P50)))
	}
	if l.Hold.Count > 0 {
		fact("held", fmt.Sprintf("half below %s, 99 %% below %s", durationText(l.Hold.P50), durationText(l.Hold.P99)))
	}
	fact("sleepers", fmt.Sprintf("%s on average, at most %s", figures(l.QueueMean), countText(l.QueueMax)))
	if l.ConvoyFraction > 0 {
		fact("in convoy", percentText(l.ConvoyFraction)+" of the trace")
	}
	if l.Owner != nil {
		fact("held at the end by", fmt.Sprintf("%s (%d)", printable(l.Owner.Name), l.Owner.TID))
	}
	for i, w := range l.Waiters {
		if i == mostLockSites {
			break
		}
		view.Waiters = append(view.Waiters, htmlLockSite{fmt.Sprintf("%s in %s", durationText(w.WaitNS), plural(w.Waits, "wait")), htmlFrames(w.Stack)})
	}
	for i, w := range l.Wakers {
		if i == mostLockSites {
			break
		}
		view.Wakers = append(view.Wakers, htmlLockSite{plural(w.Wakes, "wake"), htmlFrames(w.Stack)})
	}
	view.Threads = lockThreads(l.Threads)
	return view
}

// lockThreads names the threads that waited most.
func lockThreads(threads []recording.LockThread) string {
	const most = 8
	var names []string
	for i, t := range threads {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(threads)-most))
			break
		}
		names = append(names, fmt.Sprintf("%s %s", clip(printable(t.Name), 16), durationText(t.WaitNS)))
	}
	return strings.Join(names, ", ")
}

// newChains lists the longest relays.
func newChains(rec *recording.Recording, top int) []htmlChain {
	if rec.Locks == nil {
		return nil
	}
	const mostNames = 24
	var list []htmlChain
	for i, c := range rec.Locks.Chains {
		if i == top {
			break
		}
		chain := htmlChain{Lock: clip(printable(c.Name), longestOnPage), Length: countText(c.Length), Duration: durationText(c.DurationNS)}
		if chain.Lock == "" {
			chain.Lock = c.Lock.String()
		}
		for j, name := range c.Threads {
			if j == mostNames {
				chain.Threads = append(chain.Threads, "…")
				break
			}
			chain.Threads = append(chain.Threads, clip(printable(name), 16))
		}
		list = append(list, chain)
	}
	return list
}
