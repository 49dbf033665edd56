package tracer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"

	"memtrace/bpf"
)

// schedFamily accounts for the time of every thread: on a CPU, waiting for one, asleep.
type schedFamily struct {
	kernel   *kernel
	objects  bpf.SchedObjects
	link     link.Link
	runnable bool // the kernel counts how long threads wait for a CPU
}

func newSchedFamily() family { return &schedFamily{} }

func (f *schedFamily) name() string { return "sched" }

// load sets the constants and loads the programs.
func (f *schedFamily) load(_ context.Context, k *kernel, t *tracee) error {
	f.kernel = k
	spec, err := bpf.LoadSched()
	if err != nil {
		return fmt.Errorf("read the scheduler probes: %w", err)
	}
	if f.runnable, err = countsRunDelay(k.cache); err != nil {
		return err
	}
	only := uint32(t.pid)
	if t.options.FollowForks {
		only = 0
	}
	err = errors.Join(
		spec.Variables["sleep_of_syscall"].Set(sleepOfSyscall()),
		spec.Variables["only_process"].Set(only),
		spec.Variables["runnable_known"].Set(f.runnable),
	)
	if err != nil {
		return fmt.Errorf("set up the scheduler probes: %w", err)
	}
	spec.Maps["sched_threads"].MaxEntries = k.threadSlots()
	spec.Maps["sched_settled"].MaxEntries = k.threadSlots()
	return k.load(spec, &f.objects)
}

// countsRunDelay tells whether the kernel was built with CONFIG_SCHED_INFO, as those of the
// distributions are: only then has a task the counter.
func countsRunDelay(cache *btf.Cache) (bool, error) {
	types, err := cache.Kernel()
	if err != nil {
		return false, fmt.Errorf("read the kernel's types: %w", err)
	}
	var info *btf.Struct
	err = types.TypeByName("sched_info", &info)
	if errors.Is(err, btf.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the kernel's types: %w", err)
	}
	for _, member := range info.Members {
		if member.Name == "run_delay" {
			return true, nil
		}
	}
	return false, nil
}

// attach notes where the counters of the threads stand, then puts the probe in.
func (f *schedFamily) attach(context.Context) (err error) {
	if err := iterateTasks(f.objects.SchedBegin); err != nil {
		return fmt.Errorf("look at the target's threads: %w", err)
	}
	f.link, err = link.AttachTracing(link.TracingOptions{Program: f.objects.SchedLeave})
	if err != nil {
		return noPrivilege(err)
	}
	return nil
}

// iterateTasks runs an iterator program over all threads of the machine.
func iterateTasks(program *ebpf.Program) (err error) {
	iterator, err := link.AttachIter(link.IterOptions{Program: program})
	if err != nil {
		return noPrivilege(err)
	}
	defer func() { err = errors.Join(err, iterator.Close()) }()
	reader, err := iterator.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	_, err = io.Copy(io.Discard, reader)
	return err
}

// A gap would leave the sleeps of threads without a reason, and a switch costs much more
// than the probe: the family stays in.
func (f *schedFamily) pause() error  { return nil }
func (f *schedFamily) resume() error { return nil }

// hits returns how often threads of the target left a CPU.
func (f *schedFamily) hits() (uint64, error) {
	slots, err := f.kernel.usedSlots()
	if err != nil {
		return 0, err
	}
	threads, err := readSlots[bpf.SchedSchedThread](f.objects.SchedThreads, slots)
	if err != nil {
		return 0, err
	}
	var sum uint64
	for i := range threads {
		sum += threads[i].Hits
	}
	return sum, nil
}

// stop settles the accounts of threads that sleep or run, and takes the probe out.
func (f *schedFamily) stop() error {
	if f.link == nil {
		return nil
	}
	err := errors.Join(f.settle(), f.link.Close())
	f.link = nil
	return err
}

// settle brings the figures of all threads up to now.
func (f *schedFamily) settle() error {
	if err := iterateTasks(f.objects.SchedSettle); err != nil {
		return fmt.Errorf("look at the target's threads: %w", err)
	}
	return nil
}

func (f *schedFamily) close() error {
	if f.link == nil {
		return f.objects.Close()
	}
	err := errors.Join(f.link.Close(), f.objects.Close())
	f.link = nil
	return err
}
