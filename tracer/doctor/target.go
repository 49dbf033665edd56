package doctor

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"

	"memtrace/symbolize"
	"memtrace/tracer/heap"
	"memtrace/tracer/probe"
	"memtrace/tracer/target"
)

// target looks at one process. The error is a refusal when there is no such process.
func (c *checkup) target(ctx context.Context, pid int) error {
	looked, err := target.Look(pid)
	if err != nil {
		return err
	}
	defer looked.Close()
	c.process(looked)
	c.surroundings(looked)
	c.allocator(ctx, pid)
	c.heap(ctx, pid)
	c.files(pid)
	return nil
}

// process says what it is and whether it runs.
func (c *checkup) process(t *target.Target) {
	c.has("process", "%s, threads: %d", t.Command(), t.Threads)
	switch {
	case t.TracerPID != 0:
		c.lacks("runs", fmt.Sprintf("process %d traces it by ptrace", t.TracerPID), "memtrace can trace it all the same; for memtrace heap --freeze and commands, detach the other tracer")
	case t.Stopped:
		c.lacks("runs", "it is stopped by a signal: nothing happens in it", fmt.Sprintf("kill -CONT %d", t.PID))
	default:
		c.has("runs", "neither stopped nor traced")
	}
}

// surroundings says what stands around the process.
func (c *checkup) surroundings(t *target.Target) {
	where := "on the host"
	if t.Container != "" {
		where = "in " + t.Container
	}
	if len(t.Namespaces.Foreign) > 0 {
		where += fmt.Sprintf(", with namespaces of its own (%s), its process id there is %d", strings.Join(t.Namespaces.Foreign, ", "), t.InnerPID())
	}
	c.has("container", "%s", where)
	modes := map[int]string{0: "no filter", 1: "strict mode", 2: "filter"}
	if probe.ReturnsSafe(c.result.Kernel, t.SeccompMode) {
		c.has("seccomp", "%s: return probes are safe", modes[t.SeccompMode])
		return
	}
	c.lacks("seccomp", modes[t.SeccompMode]+": on this kernel a return probe could get the process killed, so none is used: no lifetimes, failed calls count", "Linux 6.14 and later, and up to 6.10, are safe")
}

// allocator says which malloc the process uses and where its probes go.
func (c *checkup) allocator(ctx context.Context, pid int) {
	t, err := target.Open(ctx, pid)
	var refusal *target.Refusal
	switch {
	case errors.As(err, &refusal):
		c.needs("allocator", false, refusal.Reason, refusal.Next)
		return
	case err != nil:
		c.needs("allocator", false, err.Error(), "")
		return
	}
	defer t.Close()
	c.needs("allocator", true, describe(t.Allocator), "")
	c.entries(t.Allocator)
	for _, other := range t.Others {
		c.has("another allocator", "%s", describe(other))
		c.entries(other)
	}
	for _, wrapper := range t.Wrappers {
		c.has("wrapper", "%s passes calls on and is left alone", wrapper)
	}
}

func describe(a target.Allocator) string {
	text := a.Name
	if a.Version != "" {
		text += " " + a.Version
	}
	if a.Static {
		return text + " in the executable " + a.Path
	}
	return text + " in " + a.Path
}

// entries says for each function where its probe goes, and what a hit costs there. On arm64
// nearly all are stepped, and the difference is small.
func (c *checkup) entries(a target.Allocator) {
	for _, entry := range a.Entries {
		name := "probe on " + entry.Name
		if entry.Choice.Cost == probe.Stepped && runtime.GOARCH == "amd64" {
			c.lacks(name, entry.Choice.String()+": no instruction at its start can be emulated", "nothing; a hit costs about fifteen times as much, --max-overhead still bounds it")
			continue
		}
		c.has(name, "%s", entry.Choice)
	}
}

// heap tries to find glibc's state.
func (c *checkup) heap(ctx context.Context, pid int) {
	reader, err := heap.Open(pid)
	if err != nil {
		c.lacks("heap", err.Error(), "memtrace heap and arenas read glibc alone")
		return
	}
	defer reader.Close()
	at := reader.Location()
	arenas, err := reader.Arenas(ctx)
	if err != nil {
		c.lacks("heap", err.Error(), "try again: the process changed while it was read")
		return
	}
	c.has("heap", "glibc %s, main_arena at %#x by %s, arenas: %d", at.Version, at.MainArena, at.Method, len(arenas))
}

// files says what the code that the process executes offers for its stacks.
func (c *checkup) files(pid int) {
	symbols, err := symbolize.New(pid)
	if err != nil {
		c.lacks("symbols", err.Error(), "run as root")
		return
	}
	defer symbols.Close()
	for _, file := range symbols.FileFacts() {
		c.unwind(file)
		c.names(file)
	}
}

func (c *checkup) unwind(file symbolize.FileFacts) {
	name := "stacks through " + path.Base(file.Path)
	if !file.Unwind {
		c.lacks(name, "no call frame information: walked by frame pointers", "build it with -fasynchronous-unwind-tables, or -fno-omit-frame-pointer")
		return
	}
	c.has(name, "by its call frame information")
}

func (c *checkup) names(file symbolize.FileFacts) {
	name := "names in " + path.Base(file.Path)
	lines := "no lines"
	if file.Lines {
		lines = "with lines"
	}
	switch file.Symbols {
	case "":
		c.lacks(name, file.Path+" has no symbols", "install its debug package, or run a build that is not stripped")
	case "exported names":
		c.lacks(name, file.Path+" names exported functions alone", "install its debug package (of libc.so.6: libc6-dbg)")
	default:
		c.has(name, "%s: %s, %s", file.Path, file.Symbols, lines)
	}
}
