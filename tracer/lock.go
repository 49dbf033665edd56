package tracer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"memtrace/bpf"
)

// lockFamily follows the futex calls of the target's threads: who sleeps on which word, and
// who wakes whom.
type lockFamily struct {
	kernel   *kernel
	tracee   *tracee
	objects  bpf.LockObjects
	coverage coverage
	mutex    sync.Mutex
	links    []link.Link
	epoch    uint32
	carried  carriedLocks
	frozenNS int64 // when the probes were taken out for good, 0 = they are in
	// knownArenas are the arenas as they were last read.
	knownArenas map[uint64]string
}

func newLockFamily() family { return &lockFamily{} }

func (f *lockFamily) name() string { return "lock" }

// load sets the constants and loads the programs.
func (f *lockFamily) load(_ context.Context, k *kernel, t *tracee) error {
	f.kernel, f.tracee, f.carried = k, t, carriedLocks{}
	if err := mountTracefs(); err != nil {
		return err
	}
	spec, err := bpf.LoadLock()
	if err != nil {
		return fmt.Errorf("read the lock probes: %w", err)
	}
	if err := spec.Variables["exact"].Set(t.options.Exact); err != nil {
		return fmt.Errorf("set up the lock probes: %w", err)
	}
	spec.Maps["lock_threads"].MaxEntries = k.threadSlots()
	if err := k.load(spec, &f.objects); err != nil {
		return err
	}
	k.share("lock_threads", f.objects.LockThreads)
	return nil
}

// attach puts the probes in.
func (f *lockFamily) attach(context.Context) error {
	f.coverage.begin(monotonicNS())
	return f.resume()
}

// futexTracepoints are the system calls that wait on words and wake others, each with a
// tracepoint of its own. The later ones came with Linux 5.16 and 6.7.
var futexTracepoints = []string{"futex", "futex_waitv", "futex_wait", "futex_wake", "futex_requeue"}

// resume puts the probes in, all or none, and then lets them begin at once. What threads
// were doing before is forgotten, and those that wait now are looked up.
func (f *lockFamily) resume() (err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.links) > 0 {
		return nil
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.detach())
		}
	}()
	f.epoch++
	if err := f.objects.Epoch.Set(f.epoch); err != nil {
		return fmt.Errorf("set up the lock probes: %w", err)
	}
	for _, program := range []*ebpf.Program{f.objects.LockSwitch, f.objects.LockWaking, f.objects.LockExit} {
		if err := f.keep(link.AttachTracing(link.TracingOptions{Program: program})); err != nil {
			return err
		}
	}
	for _, call := range futexTracepoints {
		if err := f.keep(link.Tracepoint("syscalls", "sys_exit_"+call, f.objects.LockLeave, nil)); err != nil {
			return err
		}
		if err := f.keep(link.Tracepoint("syscalls", "sys_enter_"+call, f.objects.LockEnter, nil)); err != nil {
			return err
		}
	}
	if err := f.keep(link.Tracepoint("syscalls", "sys_exit_restart_syscall", f.objects.LockLeave, nil)); err != nil {
		return err
	}
	if err := f.objects.Resting.Set(false); err != nil {
		return fmt.Errorf("start the lock probes: %w", err)
	}
	if err := iterateTasks(f.objects.LockSeed); err != nil {
		return fmt.Errorf("look for threads that wait already: %w", err)
	}
	f.coverage.resume(monotonicNS())
	return nil
}

// keep remembers a link. A system call that this kernel does not have is nothing to attach to.
func (f *lockFamily) keep(l link.Link, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return noPrivilege(err)
	}
	f.links = append(f.links, l)
	return nil
}

// pause takes the probes out. Waits in progress are counted up to now, and forgotten.
func (f *lockFamily) pause() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.links) == 0 {
		return nil
	}
	now := monotonicNS()
	err := f.detach()
	f.coverage.pause(now)
	return errors.Join(err, f.carry(now))
}

// share is the part of the trace during which the probes were in; what is counted needs no
// slices.
func (f *lockFamily) share() float64 { return f.coverage.share(monotonicNS()) }
func (f *lockFamily) slice() error   { return nil }

// stop takes the probes out for good.
func (f *lockFamily) stop() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.frozenNS == 0 {
		f.frozenNS = monotonicNS()
	}
	f.coverage.stop(f.frozenNS)
	return f.detach()
}

// detach stops the probes and closes their links; the mutex is held.
func (f *lockFamily) detach() error {
	if len(f.links) == 0 {
		return nil
	}
	rested := f.objects.Resting.Set(true)
	err := closeAll(f.links)
	f.links = nil
	return errors.Join(rested, err)
}

// hits sums the probe hits of all threads.
func (f *lockFamily) hits() (uint64, error) {
	threads, err := f.threads()
	var hits uint64
	for i := range threads {
		hits += threads[i].Hits
	}
	return hits, err
}

// threads reads the figures of all slots that are in use.
func (f *lockFamily) threads() ([]bpf.LockLockThread, error) {
	slots, err := f.kernel.usedSlots()
	if err != nil {
		return nil, err
	}
	return readSlots[bpf.LockLockThread](f.objects.LockThreads, slots)
}

func (f *lockFamily) close() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return errors.Join(f.detach(), f.objects.Close())
}
