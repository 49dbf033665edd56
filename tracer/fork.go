package tracer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"

	"memtrace/bpf"
	"memtrace/tracer/recording"
)

// forkFamily follows the target's children: each is traced by a session of its own, from a
// moment after its birth to its end, and children of children likewise. Their allocations
// join the target's, told apart by process.
type forkFamily struct {
	tracee   *tracee
	objects  bpf.ForkObjects
	link     link.Link
	reader   *ringbuf.Reader
	context  context.Context // of the children's sessions
	cancel   context.CancelFunc
	watching sync.WaitGroup // for the reader and the children

	mutex  sync.Mutex
	traced map[int]string // the program of each child that is traced now
	done   []*tracedChild
	lost   missedChildren
}

// tracedChild is one program that a child ran, traced to its end.
type tracedChild struct {
	process recording.Process
	rec     *recording.Recording
}

// missedChildren counts those that were not traced.
type missedChildren struct {
	short   int // ended before their probes were in
	many    int // more than maxChildren at once
	refused int
	reason  error // of the first refusal
}

func newForkFamily() family { return &forkFamily{traced: map[int]string{}} }

func (f *forkFamily) name() string { return "fork" }

func (f *forkFamily) load(ctx context.Context, k *kernel, t *tracee) error {
	f.tracee = t
	if t.options.children == nil {
		t.options.children = &childBudget{}
	}
	f.context, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	spec, err := bpf.LoadFork()
	if err != nil {
		return fmt.Errorf("read the watch for children: %w", err)
	}
	return k.load(spec, &f.objects)
}

func (f *forkFamily) attach(context.Context) (err error) {
	if f.reader, err = ringbuf.NewReader(f.objects.Children); err != nil {
		return fmt.Errorf("read of children: %w", err)
	}
	f.link, err = link.AttachRawTracepoint(link.RawTracepointOptions{Name: "sched_process_fork", Program: f.objects.ForkChild})
	if err != nil {
		return noPrivilege(err)
	}
	reader := f.reader
	f.watching.Go(func() { f.watch(reader) })
	return nil
}

// watch takes in the children that the kernel half tells of, until the reader is closed.
func (f *forkFamily) watch(reader *ringbuf.Reader) {
	for {
		record, err := reader.Read()
		if err != nil {
			return
		}
		if len(record.RawSample) >= 4 {
			pid := int(binary.NativeEndian.Uint32(record.RawSample))
			f.watching.Go(func() { f.follow(pid) })
		}
	}
}

func (f *forkFamily) pause() error          { return nil }
func (f *forkFamily) resume() error         { return nil }
func (f *forkFamily) hits() (uint64, error) { return 0, nil }

// stop ends the traces of the children that still run.
func (f *forkFamily) stop() error {
	var err error
	if f.reader != nil {
		err = f.reader.Close()
		f.reader = nil
	}
	f.cancel()
	f.watching.Wait()
	return err
}

// collect joins what the children did that have ended to what the target did.
func (f *forkFamily) collect(_ context.Context, rec *recording.Recording, _ stackNames) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	rec.OwnProcess(f.tracee.target.Comm, parentOf(f.tracee.pid))
	for _, child := range f.done {
		rec.Join(child.process, child.rec)
	}
	rec.Notes = append(rec.Notes, f.lost.notes()...)
	return nil
}

func (f *forkFamily) close() error {
	var errs []error
	if f.cancel != nil {
		errs = append(errs, f.stop())
	}
	if f.link != nil {
		errs = append(errs, f.link.Close())
	}
	return errors.Join(append(errs, f.objects.Close())...)
}

// notes says how many children were not traced, and why.
func (m *missedChildren) notes() []string {
	var notes []string
	if m.short > 0 {
		notes = append(notes, fmt.Sprintf("children that ended before their probes were in: %d; what they allocated is not counted", m.short))
	}
	if m.many > 0 {
		notes = append(notes, fmt.Sprintf("children that were not traced because %d others were: %d", maxChildren, m.many))
	}
	if m.refused > 0 {
		notes = append(notes, fmt.Sprintf("children that cannot be traced: %d, such as: %v", m.refused, m.reason))
	}
	return notes
}

// parentOf is a process's parent, 0 when it is not known.
func parentOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	return statusNumber(text, "PPid:")
}
