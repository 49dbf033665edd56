package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"memtrace/output"
	"memtrace/tracer/heap"
	"memtrace/tracer/recording"
	"memtrace/tracer/target"
)

const heapHelp = `memtrace heap tells what glibc holds in a process right now: how much is live, how much is
free and yet resident, in which arenas, and what malloc_trim would give back. It attaches no
probe and does not stop the process, unless told to.`

const heapExamples = `  memtrace heap --pid 4242
  memtrace heap --pid 4242 --format json
  memtrace heap --pid 4242 --interval 10s
  memtrace heap --pid 4242 -o heap.json
  memtrace heap --pid 4242 --freeze
`

// heapFlags is the command line of memtrace heap.
type heapFlags struct {
	pid      int
	format   string
	interval time.Duration
	duration time.Duration
	top      int
	outputs  []string
	files    []heapFile
	options  heap.Options
}

// runHeap is memtrace heap.
func runHeap(ctx context.Context, e *environment, arguments []string) error {
	flags, err := parseHeap(e, arguments)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	reader, err := openHeap(ctx, flags.pid)
	if err != nil {
		return err
	}
	defer reader.Close()
	if flags.interval == 0 {
		h, err := reader.Snapshot(ctx, flags.options)
		if err != nil {
			return err
		}
		if err := writeHeapFiles(flags.files, h, flags.top); err != nil {
			return err
		}
		return e.writeHeap(h, flags)
	}
	return e.repeatHeap(ctx, reader, flags)
}

func parseHeap(e *environment, arguments []string) (h *heapFlags, err error) {
	h = &heapFlags{}
	flags := e.flagSet("memtrace heap", heapHelp, heapExamples)
	flags.IntVarP(&h.pid, "pid", "p", 0, "the process to read")
	flags.StringVarP(&h.format, "format", "f", "text", "format on standard output: text or json")
	flags.BoolVar(&h.options.Freeze, "freeze", false, "stop the process while its heap is read, for an exact answer")
	flags.DurationVar(&h.options.FreezeLimit, "freeze-limit", heap.DefaultFreezeLimit, "let it go after this time, whatever happens")
	flags.DurationVar(&h.interval, "interval", 0, "read again each time this has passed, until Ctrl-C or the process's exit")
	flags.DurationVarP(&h.duration, "duration", "d", 0, "with --interval: stop after this time")
	flags.StringArrayVarP(&h.outputs, "output", "o", nil, "write this file too; the format follows the suffix: .json or .txt; repeatable")
	flags.IntVar(&h.top, "top", output.DefaultTop, "arenas to list")
	if err := parse(flags, arguments); err != nil {
		return nil, err
	}
	switch {
	case flags.NArg() > 0:
		return nil, usageError("unexpected word %q: memtrace heap takes flags only", flags.Arg(0))
	case !flags.Changed("pid"):
		return nil, usageError("whose heap? Give --pid PID")
	case h.pid <= 0:
		return nil, usageError("--pid %d: want the number of a process", h.pid)
	case h.format != "text" && h.format != "json":
		return nil, usageError("--format %q: a heap is written as text or json", h.format)
	case flags.Changed("interval") && h.interval <= 0 || flags.Changed("duration") && h.duration <= 0 || h.options.FreezeLimit <= 0:
		return nil, usageError("--interval, --duration and --freeze-limit want more than 0")
	case h.top < 1:
		return nil, usageError("--top %d: want at least 1", h.top)
	case len(h.outputs) > 0 && h.interval > 0:
		return nil, usageError("--output keeps one reading: leave --interval out, or use memtrace soak")
	}
	if h.files, err = openHeapFiles(h.outputs); err != nil {
		return nil, err
	}
	return h, nil
}

// openHeap finds glibc's state. A process whose malloc is another allocator's is refused:
// glibc's arenas are there all the same, but nearly empty, and would mislead.
func openHeap(ctx context.Context, pid int) (*heap.Reader, error) {
	t, refusal := target.Open(ctx, pid)
	if refusal == nil {
		defer t.Close()
		if t.Allocator.Name != "glibc" {
			return nil, &target.Refusal{
				Reason: fmt.Sprintf("process %d allocates through %s, not glibc", pid, t.Allocator.Name),
				Next:   "only glibc's heap can be read from outside; memtrace --pid traces its allocations",
			}
		}
	}
	reader, err := heap.Open(pid)
	switch {
	case refusal != nil && err != nil:
		return nil, refusal
	case refusal != nil && !reader.Location().Static:
		// Only a stripped static program, which has no malloc to probe, is read all the same.
		return nil, errors.Join(refusal, reader.Close())
	case err != nil:
		return nil, &target.Refusal{Reason: err.Error()}
	}
	return reader, nil
}

// repeatHeap reads the heap at every interval.
func (e *environment) repeatHeap(ctx context.Context, reader *heap.Reader, flags *heapFlags) error {
	if flags.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, flags.duration)
		defer cancel()
	}
	ticker := time.NewTicker(flags.interval)
	defer ticker.Stop()
	for {
		h, err := reader.Snapshot(ctx, flags.options)
		switch {
		case ctx.Err() != nil || errors.Is(err, heap.ErrGone):
			return nil
		case err != nil:
			return err
		}
		if err := e.writeHeap(h, flags); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// writeHeap writes one reading: text, or JSON, a line for each when there are several.
func (e *environment) writeHeap(h *recording.Heap, flags *heapFlags) error {
	w := bufio.NewWriter(e.stdout)
	if flags.format == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		if flags.interval == 0 {
			encoder.SetIndent("", "  ")
		}
		if err := encoder.Encode(h); err != nil {
			return fmt.Errorf("write the heap: %w", err)
		}
		return w.Flush()
	}
	if flags.interval > 0 {
		fmt.Fprintf(w, "%s\n", h.Time.Format(time.RFC3339))
	}
	options := e.textOptions(output.Options{Top: flags.top})
	if err := output.Heap(w, h, options); err != nil {
		return fmt.Errorf("write the heap: %w", err)
	}
	if flags.interval > 0 {
		fmt.Fprintln(w)
	}
	return w.Flush()
}
