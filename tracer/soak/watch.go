package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"memtrace/tracer/cgroup"
	"memtrace/tracer/recording"
	"memtrace/tracer/vitals"
)

// Options says what to sample, how often and where to.
type Options struct {
	PID    int
	Every  time.Duration
	For    time.Duration // 0 = until the context ends
	Output string        // the soak file; empty = keep the samples in memory only
	Header recording.SoakHeader
	// Heap reads the heap of the process. Its errors are noted in the sample, not fatal.
	Heap func(ctx context.Context, pid int) (*recording.Heap, error)
	// Probes, if set, adds what probes saw since the sample before.
	Probes func(*recording.Sample)
	// Restarted, if set, is told that the watched program has a new process.
	Restarted func(pid int)
	// Progress, if set, is shown each sample and the trouble with it, if any.
	Progress func(recording.Sample, error)
}

// mostPending bounds the samples that wait for a full disk to have room again.
const mostPending = 100_000

// watch is a soak under way.
type watch struct {
	Options
	program program
	file    *File
	pending []recording.Sample
	last    *recording.Sample
	soak    *recording.Soak
}

// Watch samples until the time is over or the context ends, and returns what the file holds
// by then, samples of earlier runs included. When the process ends, Watch waits for another
// one of the same program and notes the new start.
func Watch(ctx context.Context, options Options) (*recording.Soak, error) {
	if options.Every <= 0 {
		return nil, errors.New("the time between two samples must be above zero")
	}
	program, err := identify(options.PID)
	if err != nil {
		return nil, err
	}
	w := &watch{Options: options, program: program}
	if err := w.open(); err != nil {
		return nil, err
	}
	if w.file != nil {
		defer w.file.Close()
	}
	w.run(ctx)
	w.flush()
	if n := len(w.pending); n > 0 {
		w.soak.Notes = append(w.soak.Notes, fmt.Sprintf("%d samples are in this report but not in %s, which could not be written", n, options.Output))
	}
	return w.soak, nil
}

// open reads what an earlier run left in the file, and opens it for more.
func (w *watch) open() error {
	w.soak = &recording.Soak{Header: w.Header, Samples: []recording.Sample{}, Notes: []string{}}
	if w.Output == "" {
		return nil
	}
	if info, err := os.Stat(w.Output); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		earlier, err := readPath(w.Output)
		if err != nil {
			return err
		}
		w.soak = earlier
		if n := len(earlier.Samples); n > 0 {
			w.last = &earlier.Samples[n-1]
		}
	}
	file, err := Open(w.Output, w.Header)
	w.file = file
	return err
}

// readPath reads the soak file of a path.
func readPath(path string) (*recording.Soak, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the soak file: %w", err)
	}
	defer file.Close()
	soak, err := Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return soak, nil
}

// run takes samples at equal distances on the monotonic clock, which neither a clock step
// nor a suspended machine disturbs.
func (w *watch) run(ctx context.Context) {
	if w.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.For)
		defer cancel()
	}
	ticker := time.NewTicker(w.Every)
	defer ticker.Stop()
	for {
		w.sample(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// sample takes one sample of the process, or looks for its successor.
func (w *watch) sample(ctx context.Context) {
	sample, err := w.take(ctx)
	if errors.Is(err, vitals.ErrGone) {
		successor, found := w.program.successor()
		if !found {
			w.tell(recording.Sample{PID: w.program.pid, Time: time.Now()}, fmt.Errorf("%w; waiting for a new start of %s", err, w.program.name))
			return
		}
		w.program = successor
		if w.Restarted != nil {
			w.Restarted(successor.pid)
		}
		sample, err = w.take(ctx)
	}
	if err != nil {
		w.tell(sample, err)
		return
	}
	if ctx.Err() != nil && !sample.Heap && w.Options.Heap != nil {
		return // the end of the soak cut the reading of the heap short
	}
	w.note(&sample)
	w.soak.Samples = append(w.soak.Samples, sample)
	w.last = &sample
	w.pending = append(w.pending, sample)
	w.tell(sample, w.flush())
}

// tell shows progress.
func (w *watch) tell(sample recording.Sample, err error) {
	if w.Progress != nil {
		w.Progress(sample, err)
	}
}

// flush writes what is pending. What a full disk refuses stays pending for the next time.
func (w *watch) flush() error {
	if w.file == nil {
		w.pending = nil
		return nil
	}
	for len(w.pending) > 0 {
		if err := w.file.Append(w.pending[0]); err != nil {
			if len(w.pending) > mostPending {
				w.pending = w.pending[1:]
			}
			return err
		}
		w.pending = w.pending[1:]
	}
	return nil
}

// take reads the process once.
func (w *watch) take(ctx context.Context) (recording.Sample, error) {
	sample := recording.Sample{Time: time.Now(), PID: w.program.pid, BootNS: clock(unix.CLOCK_BOOTTIME), MonotonicNS: clock(unix.CLOCK_MONOTONIC)}
	v, err := vitals.Read(w.program.pid)
	if err != nil {
		return sample, err
	}
	if v.StartTicks != w.program.startTicks {
		return sample, fmt.Errorf("process %d: %w", w.program.pid, vitals.ErrGone)
	}
	sample.StartTicks, sample.UptimeS = v.StartTicks, v.UptimeSeconds
	sample.RSSBytes, sample.PSSBytes, sample.RSSAnonBytes, sample.SwapBytes = v.RSSBytes, v.PSSBytes, v.RSSAnonBytes, v.SwapBytes
	sample.CommittedBytes = v.RSSAnonBytes + v.SwapBytes
	sample.Threads, sample.CPUNS = v.Threads, v.CPU.Nanoseconds()
	sample.Voluntary, sample.Nonvoluntary = v.Voluntary, v.Nonvoluntary
	if group, err := cgroup.Of(w.program.pid); err == nil {
		sample.Cgroup, sample.CgroupPSI = group.Memory(), group.Pressure()
	}
	sample.PSI = cgroup.HostPressure()
	w.takeHeap(ctx, &sample)
	if w.Probes != nil {
		w.Probes(&sample)
	}
	return sample, nil
}

// takeHeap adds what the heap holds, or notes why that could not be read.
func (w *watch) takeHeap(ctx context.Context, sample *recording.Sample) {
	if w.Options.Heap == nil {
		return
	}
	heap, err := w.Options.Heap(ctx, w.program.pid)
	if err != nil {
		sample.Note = "heap not read: " + err.Error()
		return
	}
	sample.Heap = true
	sample.Arenas = len(heap.Arenas)
	sample.LiveBytes, sample.FreeBytes = heap.MallInfo.Uordblks+heap.MallInfo.Hblkhd, heap.MallInfo.Fordblks
	sample.TrimForecastBytes = heap.TrimForecastBytes
	for _, arena := range heap.Arenas {
		sample.FreeResidentBytes += arena.FreeResidentBytes
	}
	if !heap.Consistent {
		sample.Note = "the heap changed while it was read: its figures are approximate"
	}
}

// note marks a new start of the program, a suspended machine and a clock step, by
// comparison with the sample before.
func (w *watch) note(sample *recording.Sample) {
	last := w.last
	if last == nil || last.PID != sample.PID || last.StartTicks != sample.StartTicks || last.BootNS > sample.BootNS {
		sample.Start = true
		return
	}
	boot, monotonic := sample.BootNS-last.BootNS, sample.MonotonicNS-last.MonotonicNS
	if asleep := time.Duration(boot - monotonic); asleep > time.Second {
		sample.Note = join(sample.Note, fmt.Sprintf("the machine was suspended for %s", asleep.Round(time.Second)))
	}
	if step := sample.Time.Sub(last.Time) - time.Duration(boot); step.Abs() > time.Second {
		sample.Note = join(sample.Note, fmt.Sprintf("the clock was set by %s", step.Round(time.Second)))
	}
}

// join puts two notes into one.
func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// clock reads a clock in nanoseconds.
func clock(id int32) int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(id, &now); err != nil {
		return 0
	}
	return now.Nano()
}
