package output

import (
	"fmt"
	"strings"

	"memtrace/tracer/recording"
)

// htmlLock is one lock of the page.
type htmlLock struct {
	Name, Kind, Address string
	Story               string // in a sentence
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
	Lock, Text string
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
	view := htmlLock{Name: clip(printable(lockName(*l)), longestOnPage), Kind: printable(l.Kind), Address: l.Address.String(), Parked: l.Parked(), Story: printable(lockStory(*l))}
	fact := func(name, value string) { view.Facts = append(view.Facts, [2]string{name, value}) }
	fact("waits", countText(l.Waits))
	fact("waited", durationText(l.WaitNS.Total))
	fact("a wait", fmt.Sprintf("half below %s, 99 %% below %s, longest %s", durationText(l.WaitNS.P50), durationText(l.WaitNS.P99), durationText(l.WaitNS.Max)))
	fact("sleepers", fmt.Sprintf("%s on average, at most %s", figures(l.QueueMean), countText(l.QueueMax)))
	if l.ConvoyFraction > 0 {
		fact("in convoy", percentText(l.ConvoyFraction)+" of the trace")
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
	var list []htmlChain
	for i, c := range rec.Locks.Chains {
		if i == top {
			break
		}
		chain := htmlChain{Lock: c.Name, Text: clip(printable(chainText(c)), longestOnPage)}
		if chain.Lock == "" {
			chain.Lock = c.Lock.String()
		}
		chain.Lock = clip(printable(chain.Lock), longestOnPage)
		list = append(list, chain)
	}
	return list
}
