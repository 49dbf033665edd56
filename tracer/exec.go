package tracer

import (
	"context"
	"errors"
	"fmt"

	"github.com/cilium/ebpf/link"

	"memtrace/bpf"
	"memtrace/tracer/recording"
)

// execFamily watches whether the target becomes another program. The kernel half then
// counts nothing any more, and the session ends the trace.
type execFamily struct {
	kernel  *kernel
	objects bpf.ExecObjects
	link    link.Link
}

func newExecFamily() family { return &execFamily{} }

func (e *execFamily) name() string { return "exec" }

func (e *execFamily) load(_ context.Context, k *kernel, _ *tracee) error {
	e.kernel = k
	spec, err := bpf.LoadExec()
	if err != nil {
		return fmt.Errorf("read the watch for new programs: %w", err)
	}
	return k.load(spec, &e.objects)
}

func (e *execFamily) attach(context.Context) (err error) {
	e.link, err = link.AttachRawTracepoint(link.RawTracepointOptions{Name: "sched_process_exec", Program: e.objects.ExecProgram})
	if err != nil {
		return noPrivilege(err)
	}
	return nil
}

func (e *execFamily) pause() error          { return nil }
func (e *execFamily) resume() error         { return nil }
func (e *execFamily) hits() (uint64, error) { return 0, nil }

// collect notes that the trace is of the first program only.
func (e *execFamily) collect(_ context.Context, rec *recording.Recording, _ stackNames) error {
	executed, err := e.kernel.executed()
	if err != nil || !executed {
		return err
	}
	rec.Target.Exited = true
	rec.Notes = append(rec.Notes, "the process executed another program; the trace ended there: start that program itself, or trace its process")
	return nil
}

func (e *execFamily) close() error {
	if e.link == nil {
		return e.objects.Close()
	}
	return errors.Join(e.link.Close(), e.objects.Close())
}
