package tracer

import (
	"slices"
	"sort"

	"memtrace/bpf"
	"memtrace/tracer/recording"
)

// lockThreads fills the threads, those that waited longest first.
func (f *lockFamily) lockThreads(l *recording.Lock, shares map[uint32]bpf.LockLockShare, names stackNames) {
	for slot, share := range shares {
		who := names.thread(slot)
		l.Threads = append(l.Threads, recording.LockThread{
			TID: who.tid, Name: who.name, Waits: share.Waits, WaitNS: int64(share.WaitNs), Wakes: share.Wakes,
		})
		if share.Handoffs > 0 {
			l.Wakees++
		}
	}
	sort.Slice(l.Threads, func(i, j int) bool {
		x, y := l.Threads[i], l.Threads[j]
		return x.WaitNS > y.WaitNS || x.WaitNS == y.WaitNS && x.TID < y.TID
	})
	l.Threads = l.Threads[:min(len(l.Threads), maxLockThreads)]
}

// lockStacks fills the places where threads waited and woke, the largest first.
func lockStacks(l *recording.Lock, places []lockPlace, names stackNames) {
	places = mergePlaces(places)
	for _, place := range places {
		calls := (place.Calls + stackWeightOne/2) / stackWeightOne
		if place.role == bpf.LockLockRoleROLE_WAITER && len(l.Waiters) < maxLockStacks {
			l.Waiters = append(l.Waiters, recording.LockWaiter{Stack: names.stack(place.stack), Waits: calls, WaitNS: int64(place.WaitNs)})
		}
		if place.role == bpf.LockLockRoleROLE_WAKER && len(l.Wakers) < maxLockStacks {
			l.Wakers = append(l.Wakers, recording.LockWaker{Stack: names.stack(place.stack), Wakes: calls})
		}
	}
}

// mergePlaces sums places of one stack and role, by waiting and then by calls.
func mergePlaces(places []lockPlace) []lockPlace {
	type key struct {
		stack uint64
		role  bpf.LockLockRole
	}
	sums := map[key]lockPlace{}
	for _, place := range places {
		k := key{place.stack, place.role}
		sum := sums[k]
		sum.stack, sum.role = place.stack, place.role
		sum.Calls += place.Calls
		sum.WaitNs += place.WaitNs
		sums[k] = sum
	}
	merged := make([]lockPlace, 0, len(sums))
	for _, sum := range sums {
		merged = append(merged, sum)
	}
	slices.SortFunc(merged, func(x, y lockPlace) int {
		switch {
		case x.WaitNs != y.WaitNs:
			return compareDescending(x.WaitNs, y.WaitNs)
		case x.Calls != y.Calls:
			return compareDescending(x.Calls, y.Calls)
		}
		return compareDescending(x.stack, y.stack)
	})
	return merged
}

func compareDescending(x, y uint64) int {
	if x > y {
		return -1
	}
	return 1
}
