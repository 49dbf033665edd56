package tracer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf/link"

	"memtrace/bpf"
	"memtrace/tracer/recording"
	"memtrace/tracer/target"
)

// mmapFamily follows the system calls by which the target takes memory from the kernel and
// gives it back. The allocator's own are told apart; the arena family makes its events of them.
type mmapFamily struct {
	tracee  *tracee
	kernel  *kernel
	objects bpf.MmapObjects
	log     *mmapLog
	links   []link.Link
	reading repeats // of the log
}

// drainMmapEvery is how often the log is read: it has room for 60,000 calls.
const drainMmapEvery = 20 * time.Millisecond

func newMmapFamily() family { return &mmapFamily{} }

func (f *mmapFamily) name() string { return "mmap" }

// load sets the constants and loads the programs.
func (f *mmapFamily) load(_ context.Context, k *kernel, t *tracee) error {
	f.kernel, f.tracee = k, t
	if err := mountTracefs(); err != nil {
		return err
	}
	spec, err := bpf.LoadMmap()
	if err != nil {
		return fmt.Errorf("read the probes of memory calls: %w", err)
	}
	inside, count := allocatorPlaces(t)
	if err := errors.Join(
		spec.Variables["call_numbers"].Set(memoryCallNumbers),
		spec.Variables["inside"].Set(inside),
		spec.Variables["inside_count"].Set(count),
	); err != nil {
		return fmt.Errorf("set up the probes of memory calls: %w", err)
	}
	spec.Maps["mmap_threads"].MaxEntries = k.threadSlots()
	if err := k.load(spec, &f.objects); err != nil {
		return err
	}
	k.share("mmap_threads", f.objects.MmapThreads)
	if f.log, err = openMmapLog(f.objects.MmapLog, k, t); err != nil {
		return err
	}
	t.memory = f.log
	return nil
}

// allocatorPlaces is where the code of the process's allocators lies; what does not fit is
// recognized by the stack alone.
func allocatorPlaces(t *tracee) (inside [64]bpf.MmapMmapRange, count uint32) {
	for _, r := range allocatorRanges(t) {
		if int(count) == len(inside) {
			break
		}
		inside[count] = bpf.MmapMmapRange{Start: r.Start, End: r.End}
		count++
	}
	return inside, count
}

// allocatorRanges is the code of all allocators of the process.
func allocatorRanges(t *tracee) []target.Range {
	ranges := slices.Clone(t.target.Allocator.Inside)
	for _, other := range t.target.Others {
		ranges = append(ranges, other.Inside...)
	}
	return ranges
}

// memoryTracepoints are the calls that are followed, each with a tracepoint of its own.
var memoryTracepoints = []string{"mmap", "munmap", "mremap", "brk", "madvise", "mprotect"}

// attach puts the probes in, the ends of the calls first, and begins to read the log.
func (f *mmapFamily) attach(context.Context) error {
	f.log.begin()
	if err := f.watchThreshold(); err != nil {
		return err
	}
	for _, call := range memoryTracepoints {
		leave, err := link.Tracepoint("syscalls", "sys_exit_"+call, f.objects.MmapLeave, nil)
		if err != nil {
			return missingTracepoint(call, err)
		}
		f.links = append(f.links, leave)
		enter, err := link.Tracepoint("syscalls", "sys_enter_"+call, f.objects.MmapEnter, nil)
		if err != nil {
			return missingTracepoint(call, err)
		}
		f.links = append(f.links, enter)
	}
	f.reading.start(drainMmapEvery, f.log.drain)
	return nil
}

// missingTracepoint says what to do about a kernel that does not trace a system call.
func missingTracepoint(call string, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("attach to the system call %s: %w; leave it out with --probes alloc,lock,sched", call, err)
	}
	return noPrivilege(fmt.Errorf("attach to the system call %s: %w", call, err))
}

// pause and resume do nothing: an address space cannot be followed with gaps, and the calls
// are rare beside what else is probed.
func (f *mmapFamily) pause() error  { return nil }
func (f *mmapFamily) resume() error { return nil }

// watchThreshold tells the kernel half where the allocator keeps its mmap threshold.
func (f *mmapFamily) watchThreshold() error {
	if err := errors.Join(
		f.objects.LastThreshold.Set(f.log.heaps.threshold),
		f.objects.ThresholdAddress.Set(f.log.watched),
	); err != nil {
		return fmt.Errorf("watch the mmap threshold: %w", err)
	}
	return nil
}

// tick reports what went wrong while the log was read.
func (f *mmapFamily) tick(int64) error { return f.reading.failure() }

// stop takes the probes out for good and reads the rest of the log.
func (f *mmapFamily) stop() error {
	f.reading.stop()
	return errors.Join(f.detach(), f.reading.failure(), f.log.drain())
}

func (f *mmapFamily) detach() error {
	err := closeAll(f.links)
	f.links = nil
	return err
}

// hits sums the probe hits of all threads.
func (f *mmapFamily) hits() (uint64, error) {
	slots, err := f.kernel.usedSlots()
	if err != nil {
		return 0, err
	}
	threads, err := readSlots[bpf.MmapMmapThread](f.objects.MmapThreads, slots)
	var hits uint64
	for i := range threads {
		hits += threads[i].Hits
	}
	return hits, err
}

// collect fills the mmap section.
func (f *mmapFamily) collect(ctx context.Context, rec *recording.Recording, names stackNames) error {
	if err := f.log.drain(); err != nil {
		return err
	}
	if f.tracee.options.probes("mmap") {
		rec.Mmap = f.log.describe(ctx, names)
	}
	return nil
}

func (f *mmapFamily) close() error {
	f.reading.stop()
	err := f.detach()
	if f.log != nil {
		err = errors.Join(err, f.log.close())
	}
	return errors.Join(err, f.objects.Close())
}
