package tracer

import "memtrace/bpf"

// lockInProgress is what has not ended at some time and so stands in no counter yet.
type lockInProgress struct {
	waits     uint64
	waitNS    uint64
	sleeperNS uint64 // of all who slept since the probes were put in
	busyNS    uint64 // of the busy period that is under way
}

// carriedLocks is what was in progress at each pause, summed by lock.
type carriedLocks map[bpf.LockLockKey]lockInProgress

// waitsNow tells whether a thread is in a wait that it has slept in.
func waitsNow(t *bpf.LockLockThread) bool {
	wait := t.Does == bpf.LockFutexDoesFUTEX_DOES_WAIT || t.Does == bpf.LockFutexDoesFUTEX_DOES_LOCK
	return wait && t.Asleep != 0 && t.Interrupted == 0
}

// sleepsOn is the lock that a waiting thread sleeps on: it may have been moved.
func sleepsOn(t *bpf.LockLockThread, locks map[bpf.LockLockKey]bpf.LockLock) bpf.LockLockKey {
	key := bpf.LockLockKey{Address: t.Address, Pid: t.Pid}
	if lock, known := locks[key]; known && lock.RequeuedNs > t.EnteredNs {
		key.Address = lock.RequeuedTo
	}
	return key
}

// inProgress adds up what is in progress at the time now, by lock.
func (f *lockFamily) inProgress(now int64, locks map[bpf.LockLockKey]bpf.LockLock, threads []bpf.LockLockThread) carriedLocks {
	progress := carriedLocks{}
	for i := range threads {
		t := &threads[i]
		if !waitsNow(t) || t.Epoch != f.epoch || uint64(now) < t.EnteredNs {
			continue
		}
		key := sleepsOn(t, locks)
		sum := progress[key]
		sum.waits++
		sum.waitNS += uint64(now) - t.EnteredNs
		progress[key] = sum
	}
	for key, lock := range locks {
		if lock.Epoch != f.epoch {
			continue
		}
		sum := progress[key]
		sum.sleeperNS += lock.SleeperArea + lock.Sleepers*uint64(now)
		if start := lock.Now.StartNs; start != 0 && uint64(now) > start {
			sum.busyNS += uint64(now) - start
		}
		progress[key] = sum
	}
	return progress
}

// carry keeps what is in progress at a pause. Waits are counted when they end, or at the end
// of the trace: not here, where they may be cut in two.
func (f *lockFamily) carry(now int64) error {
	locks, err := readAll[bpf.LockLockKey, bpf.LockLock](f.objects.Locks)
	if err != nil {
		return err
	}
	threads, err := f.threads()
	if err != nil {
		return err
	}
	for key, progress := range f.inProgress(now, locks, threads) {
		sum := f.carried[key]
		sum.waitNS += progress.waitNS
		sum.sleeperNS += progress.sleeperNS
		sum.busyNS += progress.busyNS
		f.carried[key] = sum
	}
	return nil
}
