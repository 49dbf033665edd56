package tracer

import (
	"context"
	"math/bits"
	"sort"

	"memtrace/bpf"
	"memtrace/tracer/recording"
)

// Bounds of the locks section: those with the least waiting are left out.
const (
	maxLocks       = 1000
	maxLockStacks  = 10
	maxLockThreads = 256
	maxChains      = 10
	tolerated      = 1000 // one update lost in so many calls does not hide where a lock drains
)

// lockState is what the maps hold of all locks at one time.
type lockState struct {
	now      int64
	locks    map[bpf.LockLockKey]bpf.LockLock
	threads  []bpf.LockLockThread
	shares   map[uint64]map[uint32]bpf.LockLockShare // by address and slot
	stacks   map[bpf.LockLockKey][]lockPlace
	progress carriedLocks
}

// lockPlace is a stack of waiters or wakers.
type lockPlace struct {
	stack uint64
	role  bpf.LockLockRole
	bpf.LockLockStack
}

// read reads the maps.
func (f *lockFamily) read() (s lockState, err error) {
	if s.now = f.frozenNS; s.now == 0 {
		s.now = monotonicNS()
	}
	if s.locks, err = readAll[bpf.LockLockKey, bpf.LockLock](f.objects.Locks); err != nil {
		return s, err
	}
	if s.threads, err = f.threads(); err != nil {
		return s, err
	}
	shares, err := readAll[bpf.LockLockShareKey, bpf.LockLockShare](f.objects.LockShares)
	if err != nil {
		return s, err
	}
	s.shares = map[uint64]map[uint32]bpf.LockLockShare{}
	for key, share := range shares {
		s.addShare(key.Address, key.Slot, share)
	}
	stacks, err := readAll[bpf.LockLockStackKey, bpf.LockLockStack](f.objects.LockStacks)
	if err != nil {
		return s, err
	}
	s.stacks = map[bpf.LockLockKey][]lockPlace{}
	for key, place := range stacks {
		lock := bpf.LockLockKey{Address: key.Address, Pid: key.Pid}
		s.stacks[lock] = append(s.stacks[lock], lockPlace{key.Stack, key.Role, place})
	}
	s.addProgress(f)
	return s, nil
}

func (s *lockState) addShare(address uint64, slot uint32, share bpf.LockLockShare) {
	of := s.shares[address]
	if of == nil {
		of = map[uint32]bpf.LockLockShare{}
		s.shares[address] = of
	}
	sum := of[slot]
	sum.Waits += share.Waits
	sum.WaitNs += share.WaitNs
	sum.Wakes += share.Wakes
	sum.Handoffs += share.Handoffs
	of[slot] = sum
}

// addProgress counts what is in progress, and was at pauses, to the figures.
func (s *lockState) addProgress(f *lockFamily) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	s.progress = f.inProgress(s.now, s.locks, s.threads)
	for slot := range s.threads {
		t := &s.threads[slot]
		if !waitsNow(t) || t.Epoch != f.epoch || uint64(s.now) < t.EnteredNs {
			continue
		}
		key, ns := sleepsOn(t, s.locks), uint64(s.now)-t.EnteredNs
		s.addShare(key.Address, uint32(slot), bpf.LockLockShare{Waits: 1, WaitNs: ns})
		lock := s.locks[key]
		addTime(lock.WaitTimes[:], ns)
		lock.WaitMaxNs = max(lock.WaitMaxNs, ns)
		s.locks[key] = lock
		if t.Stack != 0 {
			place := bpf.LockLockStack{Calls: stackWeightOne, WaitNs: ns}
			s.stacks[key] = append(s.stacks[key], lockPlace{t.Stack, bpf.LockLockRoleROLE_WAITER, place})
		}
	}
	for key, carried := range f.carried {
		sum := s.progress[key]
		sum.waitNS += carried.waitNS
		sum.sleeperNS += carried.sleeperNS
		sum.busyNS += carried.busyNS
		s.progress[key] = sum
	}
}

// stackWeightOne is STACK_WEIGHT_ONE of bpf/lock.h.
const stackWeightOne = 1 << 8

// collect fills the locks section.
func (f *lockFamily) collect(ctx context.Context, rec *recording.Recording, names stackNames) error {
	state, err := f.read()
	if err != nil {
		return err
	}
	covered, gaps := f.coverage.covered(state.now)
	section := &recording.Locks{Locks: []recording.Lock{}, Calls: futexCallsOf(state), Estimated: gaps}
	for key := range state.locks {
		section.Locks = append(section.Locks, f.lock(key, state, covered, names))
	}
	if err := f.describeKinds(ctx, section.Locks, state); err != nil {
		return err
	}
	sortLocks(section.Locks)
	section.Chains = f.chains(state, section.Locks, names)
	if len(section.Locks) > maxLocks {
		section.Dropped = len(section.Locks) - maxLocks
		section.Locks = section.Locks[:maxLocks]
	}
	lost, err := f.kernel.losses()
	if err != nil {
		return err
	}
	calls := section.Calls.Waits + section.Calls.Wakes
	if missed := lost[bpf.SharedLossLOSS_LOCKS] + lost[bpf.SharedLossLOSS_THREADS]; missed > calls/tolerated {
		section.Withheld = "some locks or threads found no room in the probes' tables"
	}
	if share := f.coverage.share(state.now); gaps && share > 0 {
		scaleLocks(section, 1/share)
	}
	rec.Locks = section
	return nil
}

// futexCallsOf sums what all threads called.
func futexCallsOf(s lockState) recording.FutexCalls {
	var c recording.FutexCalls
	for i := range s.threads {
		t := &s.threads[i]
		c.Waits += t.Waits + t.Eagain
		c.Slept += t.Slept
		c.EAgain += t.Eagain
		c.Timeouts += t.Timeouts
		c.Wakes += t.Wakes
		c.EmptyWakes += t.EmptyWakes
		c.Requeues += t.Requeues
	}
	for _, progress := range s.progress {
		c.Waits += progress.waits
		c.Slept += progress.waits
	}
	return c
}

// lock describes one lock; its kind, name and owner are found out later.
func (f *lockFamily) lock(key bpf.LockLockKey, s lockState, covered int64, names stackNames) recording.Lock {
	from, progress := s.locks[key], s.progress[key]
	busy := from.PeriodNs + progress.busyNS
	l := recording.Lock{
		Address: recording.Address(key.Address), AcquisitionsContended: from.Acquisitions,
		Waits: from.Waits + progress.waits, Waiting: progress.waits,
		WaitNS: recording.WaitTimes{
			Total: int64(from.WaitNs + progress.waitNS), Max: int64(from.WaitMaxNs),
			P50: percentile(from.WaitTimes[:], 0.5), P99: percentile(from.WaitTimes[:], 0.99),
		},
		Handoffs: from.Handoffs, HandoffsEffective: from.Effective, HandoffsFutile: from.Futile,
		HandoffNS: recording.HandoffTimes{P50: percentile(from.HandoffTimes[:], 0.5), P99: percentile(from.HandoffTimes[:], 0.99)},
		Hold: recording.Hold{
			P50: percentile(from.HoldTimes[:], 0.5), P99: percentile(from.HoldTimes[:], 0.99),
			Total: int64(from.HoldNs), OnCPU: int64(from.HoldCpuNs), Asleep: int64(from.HoldAsleepNs),
			Preempted: max(0, int64(from.HoldNs-from.HoldCpuNs-from.HoldAsleepNs)), Count: from.Holds,
		},
		QueueMax: from.SleepersMax, Threads: []recording.LockThread{}, BusyPeriods: from.Periods,
		EAgain: from.Eagain, Timeouts: from.Timeouts, Interrupted: from.Interrupted,
		Wakes: from.Wakes, Woken: from.Woken, EmptyWakes: from.EmptyWakes, Requeued: from.Requeued,
		Waiters: []recording.LockWaiter{}, Wakers: []recording.LockWaker{},
	}
	if asleep := int64(progress.sleeperNS); asleep > 0 && busy > 0 {
		l.QueueMean = float64(asleep) / float64(busy)
	}
	f.lockPeriods(&l, from, s.now, covered)
	f.lockThreads(&l, s.shares[key.Address], names)
	lockStacks(&l, s.stacks[key], names)
	return l
}

// lockPeriods describes the busy periods, the one that is under way included.
func (f *lockFamily) lockPeriods(l *recording.Lock, from bpf.LockLock, now, covered int64) {
	longest, busy, convoy := from.Longest, from.PeriodNs, from.ConvoyNs
	if start := from.Now.StartNs; start != 0 && from.Epoch == f.epoch && uint64(now) > start {
		current := from.Now
		current.EndNs = uint64(now)
		current.SleeperNs = from.SleeperArea + from.Sleepers*uint64(now) - from.PeriodArea
		length := current.EndNs - current.StartNs
		l.BusyPeriods++
		busy += length
		if members := uint64(bits.OnesCount64(current.Wakees)); members >= 3 && current.Handoffs >= 8*members && current.SleeperNs >= 2*length {
			convoy += length
		}
		if length > longest.EndNs-longest.StartNs {
			longest = current
		}
	}
	l.BusyFraction = min(1, fraction(busy, uint64(max(covered, 0))))
	l.ConvoyFraction = min(1, fraction(convoy, uint64(max(covered, 0))))
	if longest.StartNs == 0 {
		return
	}
	length := longest.EndNs - longest.StartNs
	period := &recording.BusyPeriod{
		StartNS: f.tracee.since(longest.StartNs), DurationNS: int64(length), Handoffs: longest.Handoffs,
		Wakees: uint64(bits.OnesCount64(longest.Wakees)), QueueMean: float64(longest.SleeperNs) / float64(max(length, 1)),
	}
	if period.Wakees > 0 {
		l.Rotation = float64(period.Handoffs) / float64(period.Wakees)
	}
	l.Longest = period
}

// sortLocks puts contended locks first, by total wait, and parked ones last.
func sortLocks(locks []recording.Lock) {
	sort.Slice(locks, func(i, j int) bool {
		x, y := locks[i], locks[j]
		switch {
		case x.Parked() != y.Parked():
			return y.Parked()
		case x.WaitNS.Total != y.WaitNS.Total:
			return x.WaitNS.Total > y.WaitNS.Total
		case x.EAgain+x.Wakes != y.EAgain+y.Wakes:
			return x.EAgain+x.Wakes > y.EAgain+y.Wakes
		}
		return x.Address < y.Address
	})
}
