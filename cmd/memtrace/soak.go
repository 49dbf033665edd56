package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"memtrace/output"
	"memtrace/tracer"
	"memtrace/tracer/heap"
	"memtrace/tracer/recording"
	"memtrace/tracer/soak"
	"memtrace/tracer/target"
)

const soakHelp = `memtrace soak samples a process for hours and then says: plateau, leak, steps, still warming
up, or too short to say; for live and for committed memory apart. It attaches no probe, unless
told to. It outlives the process: a new start of the same program is noted and judged apart.
Given the same file again, it goes on where it stopped.`

const soakExamples = `  memtrace soak --pid 4242 --every 30s --for 6h -o soak.jsonl
  memtrace soak --pid 4242 --every 1m -o soak.jsonl        until Ctrl-C, then the report
  memtrace report soak.jsonl                               the report again
`

// soakFlags is the command line of memtrace soak.
type soakFlags struct {
	pid    int
	every  time.Duration
	length time.Duration
	path   string
	format string
	probes bool
	quiet  bool
	top    int
}

// runSoak is memtrace soak.
func runSoak(ctx context.Context, e *environment, arguments []string) error {
	flags, err := parseSoak(e, arguments)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	header, err := soakHeader(ctx, flags)
	if err != nil {
		return err
	}
	heaps := &heapReaders{}
	defer heaps.close()
	options := soak.Options{
		PID: flags.pid, Every: flags.every, For: flags.length, Output: flags.path, Header: header,
		Heap:     heaps.read,
		Progress: e.soakProgress(flags.quiet),
	}
	if flags.probes {
		probes := &soakProbes{}
		defer probes.close()
		if err := probes.follow(ctx, flags.pid); err != nil {
			return err
		}
		options.Probes = probes.add
		options.Restarted = func(pid int) {
			if err := probes.follow(ctx, pid); err != nil {
				fmt.Fprintf(e.stderr, "memtrace: no probes in process %d: %v\n", pid, err)
			}
		}
	}
	result, err := soak.Watch(ctx, options)
	if err != nil {
		return err
	}
	return e.writeSoak(result, flags.format, flags.top)
}

func parseSoak(e *environment, arguments []string) (*soakFlags, error) {
	s := &soakFlags{}
	flags := e.flagSet("memtrace soak", soakHelp, soakExamples)
	flags.IntVarP(&s.pid, "pid", "p", 0, "the process to sample")
	flags.DurationVar(&s.every, "every", 30*time.Second, "time between two samples")
	flags.DurationVar(&s.length, "for", 0, "stop after this time (default until Ctrl-C)")
	flags.StringVarP(&s.path, "output", "o", "", "the soak file, a line for each sample; an existing one is continued")
	flags.StringVarP(&s.format, "format", "f", "text", "format of the report on standard output: text or json")
	flags.BoolVar(&s.probes, "probes", false, "count allocations too, by probes")
	flags.IntVar(&s.top, "top", output.DefaultTop, "events to list for each start")
	flags.BoolVarP(&s.quiet, "quiet", "q", false, "no progress on standard error")
	if err := parse(flags, arguments); err != nil {
		return nil, err
	}
	switch {
	case flags.NArg() > 0:
		return nil, usageError("unexpected word %q: memtrace soak takes flags only", flags.Arg(0))
	case !flags.Changed("pid"):
		return nil, usageError("which process? Give --pid PID")
	case s.pid <= 0:
		return nil, usageError("--pid %d: want the number of a process", s.pid)
	case s.every < 10*time.Millisecond:
		return nil, usageError("--every %v: want at least 10ms", s.every)
	case flags.Changed("for") && s.length <= 0:
		return nil, usageError("--for %v: want more than 0", s.length)
	case s.format != "text" && s.format != "json":
		return nil, usageError("--format %q: a soak is reported as text or json", s.format)
	case s.top < 1:
		return nil, usageError("--top %d: want at least 1", s.top)
	}
	return s, nil
}

// soakHeader looks at the process and describes it. A process without a known allocator
// can be sampled all the same: /proc tells its committed memory.
func soakHeader(ctx context.Context, flags *soakFlags) (recording.SoakHeader, error) {
	header := recording.SoakHeader{
		Schema: recording.SoakSchema, Started: time.Now(), EveryNS: flags.every.Nanoseconds(), Every: flags.every.String(),
		Target: recording.Target{PID: flags.pid},
	}
	if host, err := os.Hostname(); err == nil {
		header.Host = host
	}
	t, err := target.Open(ctx, flags.pid)
	if err != nil {
		var refusal *target.Refusal
		if !errors.As(err, &refusal) || !alive(flags.pid) {
			return header, err
		}
		return header, nil
	}
	defer t.Close()
	header.Target = recording.Target{
		PID: t.PID, Command: t.Command(), Exe: t.Exe, Threads: t.Threads, Container: t.Container, Started: t.Started,
		Allocator: recording.Allocator{Name: t.Allocator.Name, Version: t.Allocator.Version, Path: t.Allocator.Path},
		BuildID:   t.BuildID(),
	}
	return header, nil
}

// alive tells whether a process has memory of its own: kernel threads and zombies have none.
func alive(pid int) bool {
	_, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil
}

// heapReaders keeps the reader of the process that is sampled.
type heapReaders struct {
	pid    int
	reader *heap.Reader
}

// read takes a snapshot of the process's heap.
func (h *heapReaders) read(ctx context.Context, pid int) (*recording.Heap, error) {
	if h.reader == nil || h.pid != pid {
		h.close()
		reader, err := openHeap(ctx, pid)
		if err != nil {
			return nil, err
		}
		h.pid, h.reader = pid, reader
	}
	snapshot, err := h.reader.Snapshot(ctx, heap.Options{})
	if err != nil {
		h.close()
	}
	return snapshot, err
}

func (h *heapReaders) close() {
	if h.reader != nil {
		h.reader.Close()
		h.reader = nil
	}
}

// soakProbes counts allocations between the samples.
type soakProbes struct {
	session *tracer.Session
	last    recording.AllocationTotals
}

// follow puts the probes into a process, and takes them out of the one before.
func (p *soakProbes) follow(ctx context.Context, pid int) error {
	p.close()
	session, err := tracer.Open(ctx, tracer.Options{PID: pid, Probes: []string{"alloc"}, Round: "none", MaxOverhead: 0.10, Version: version()})
	if err != nil {
		return err
	}
	if err := session.Attach(ctx); err != nil {
		return errors.Join(err, session.Close())
	}
	p.session, p.last = session, recording.AllocationTotals{}
	return nil
}

// add puts what was allocated since the sample before into a sample.
func (p *soakProbes) add(sample *recording.Sample) {
	if p.session == nil {
		return
	}
	totals, err := p.session.Totals()
	if err != nil {
		sample.Note = "allocations not counted: " + err.Error()
		return
	}
	sample.Allocs, sample.AllocBytes = totals.Allocs-p.last.Allocs, totals.AllocBytes-p.last.AllocBytes
	p.last = totals
}

func (p *soakProbes) close() {
	if p.session != nil {
		p.session.Close()
		p.session = nil
	}
}

// soakProgress shows each sample on a terminal, and trouble anywhere, once for each kind.
func (e *environment) soakProgress(quiet bool) func(recording.Sample, error) {
	terminal := isTerminal(e.stderr)
	told := ""
	return func(sample recording.Sample, err error) {
		switch {
		case err != nil && err.Error() != told:
			told = err.Error()
			fmt.Fprintf(e.stderr, "memtrace: %v\n", err)
		case err == nil && terminal && !quiet:
			fmt.Fprintf(e.stderr, "\r%s", output.SoakProgress(sample))
		}
	}
}

// writeSoak judges a soak and writes the report.
func (e *environment) writeSoak(s *recording.Soak, format string, top int) error {
	report := soak.Judge(s)
	w := bufio.NewWriter(e.stdout)
	var err error
	if format == "json" {
		err = output.SoakJSON(w, report)
	} else {
		err = output.SoakText(w, s, report, e.textOptions(output.Options{Top: top}))
	}
	if err := errors.Join(err, w.Flush()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
