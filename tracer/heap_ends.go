package tracer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"memtrace/tracer/heap"
	"memtrace/tracer/recording"
)

// heapFamily has no probe: it reads the allocator's own state from outside, at the start
// and at the end of the trace, so that the recording tells how the heap moved.
type heapFamily struct {
	tracee *tracee
	reader *heap.Reader
	before *recording.Heap
	latest *recording.Heap
}

func newHeapFamily() family { return &heapFamily{} }

func (h *heapFamily) name() string { return "heap" }

// load reads the heap before the trace begins. A command that is held before its first
// instruction has no heap yet: its first reading is the last.
func (h *heapFamily) load(ctx context.Context, _ *kernel, t *tracee) error {
	h.tracee = t
	if h.tracee.target.Allocator.Name != "glibc" || h.open() != nil {
		return nil
	}
	before, err := h.reader.Snapshot(ctx, heap.Options{})
	if err == nil {
		h.before = before
	}
	return ctx.Err()
}

// open finds glibc's state, unless that was done.
func (h *heapFamily) open() (err error) {
	if h.reader == nil {
		h.reader, err = heap.Open(h.tracee.pid)
	}
	return err
}

func (h *heapFamily) attach(context.Context) error { return nil }
func (h *heapFamily) pause() error                 { return nil }
func (h *heapFamily) resume() error                { return nil }
func (h *heapFamily) hits() (uint64, error)        { return 0, nil }

// collect reads the heap at the end. What cannot be read is noted, not fatal: the rest of
// the trace stands.
func (h *heapFamily) collect(ctx context.Context, rec *recording.Recording, _ stackNames) error {
	rec.HeapBefore = h.before
	if name := h.tracee.target.Allocator.Name; name != "glibc" {
		rec.Notes = append(rec.Notes, fmt.Sprintf("the heap was not read: only glibc's can be, the process uses %s", name))
		return nil
	}
	after, err := h.read(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, heap.ErrGone):
		rec.Notes = append(rec.Notes, "the heap was not read at the end: the process had ended")
	case err != nil:
		rec.Notes = append(rec.Notes, fmt.Sprintf("the heap was not read at the end: %v", err))
	default:
		rec.Heap = after
	}
	return nil
}

// read reads the heap, unless a young enough reading is there.
func (h *heapFamily) read(ctx context.Context) (*recording.Heap, error) {
	if h.latest != nil && time.Since(h.latest.Time) < h.tracee.options.HeapEvery {
		return h.latest, nil
	}
	if err := h.open(); err != nil {
		return nil, err
	}
	read, err := h.reader.Snapshot(ctx, heap.Options{})
	h.latest = read
	return read, err
}

func (h *heapFamily) close() error {
	if h.reader == nil {
		return nil
	}
	err := h.reader.Close()
	h.reader = nil
	return err
}
