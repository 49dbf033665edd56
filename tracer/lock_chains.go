package tracer

import (
	"math"
	"sort"

	"memtrace/bpf"
	"memtrace/tracer/recording"
)

// shortestChain is the least number of handoffs that make a chain worth a word.
const shortestChain = 3

// lockRelay is a chain and the lock of its last handoff.
type lockRelay struct {
	address uint64
	bpf.LockLockChain
}

// chains lists the longest relays: those that have ended, kept with their locks, and those
// under way, kept with the thread that was woken last.
func (f *lockFamily) chains(s lockState, locks []recording.Lock, names stackNames) []recording.Chain {
	byName := map[recording.Address]string{}
	for _, lock := range locks {
		byName[lock.Address] = lock.Name
	}
	longest := map[uint64]lockRelay{} // by its start: the threads that it went through have copies
	keep := func(address uint64, chain bpf.LockLockChain) {
		if chain.Length >= shortestChain && chain.Length > longest[chain.StartNs].Length {
			longest[chain.StartNs] = lockRelay{address, chain}
		}
	}
	for key, lock := range s.locks {
		keep(key.Address, lock.Chain)
	}
	for i := range s.threads {
		if t := &s.threads[i]; t.Epoch == f.epoch {
			keep(t.ChainOn, t.Chain)
		}
	}
	chains := []recording.Chain{}
	for _, chain := range longest {
		address := recording.Address(chain.address)
		c := recording.Chain{
			Lock: address, Name: byName[address], Length: chain.Length,
			StartNS: f.tracee.since(chain.StartNs), DurationNS: int64(chain.EndNs - chain.StartNs),
			TIDs: []int{}, Threads: []string{}, TimesNS: []int64{},
		}
		for _, link := range chainLinks(chain.LockLockChain) {
			who := names.thread(link.slot)
			c.TIDs = append(c.TIDs, who.tid)
			c.Threads = append(c.Threads, who.name)
			c.TimesNS = append(c.TimesNS, f.tracee.since(link.time))
		}
		chains = append(chains, c)
	}
	sort.Slice(chains, func(i, j int) bool {
		x, y := chains[i], chains[j]
		return x.Length > y.Length || x.Length == y.Length && x.StartNS < y.StartNS
	})
	return chains[:min(len(chains), maxChains)]
}

// chainLink is a thread of a relay and when it was woken, by the kernel's monotonic clock.
type chainLink struct {
	slot uint32
	time uint64
}

// chainLinks returns the threads of a chain in order: the last ones, where it is long.
func chainLinks(chain bpf.LockLockChain) []chainLink {
	ring := uint64(len(chain.Slots))
	first := uint64(0)
	if chain.Length >= ring {
		first = chain.Length + 1 - ring
	}
	links := make([]chainLink, chain.Length+1-first)
	time := chain.EndNs
	for i := chain.Length; ; i-- {
		links[i-first] = chainLink{chain.Slots[i%ring], time}
		if i == first {
			return links
		}
		time -= min(uint64(chain.GapsNs[i%ring]), time)
	}
}

// scaleLocks scales counts and sums to the whole of a trace that was covered in part.
func scaleLocks(section *recording.Locks, factor float64) {
	count := func(numbers ...*uint64) {
		for _, n := range numbers {
			*n = uint64(math.Round(float64(*n) * factor))
		}
	}
	time := func(times ...*int64) {
		for _, ns := range times {
			*ns = int64(math.Round(float64(*ns) * factor))
		}
	}
	c := &section.Calls
	count(&c.Waits, &c.Slept, &c.EAgain, &c.Timeouts, &c.Wakes, &c.EmptyWakes, &c.Requeues)
	for i := range section.Locks {
		l := &section.Locks[i]
		count(&l.AcquisitionsContended, &l.Waits, &l.Handoffs, &l.HandoffsEffective, &l.HandoffsFutile, &l.BusyPeriods,
			&l.EAgain, &l.Timeouts, &l.Interrupted, &l.Wakes, &l.Woken, &l.EmptyWakes, &l.Requeued, &l.Hold.Count)
		time(&l.WaitNS.Total, &l.Hold.Total, &l.Hold.OnCPU, &l.Hold.Asleep, &l.Hold.Preempted)
		for j := range l.Threads {
			count(&l.Threads[j].Waits, &l.Threads[j].Wakes)
			time(&l.Threads[j].WaitNS)
		}
		for j := range l.Waiters {
			count(&l.Waiters[j].Waits)
			time(&l.Waiters[j].WaitNS)
		}
		for j := range l.Wakers {
			count(&l.Wakers[j].Wakes)
		}
	}
}
