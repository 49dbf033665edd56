package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// tool is a tracer: one that starts its target, or one that is attached to it.
type tool struct {
	name   string
	prefix []string // what stands before the target's command
	// command attaches to the process; "{pid}", "{dir}" and "{ready}" are replaced.
	command []string
	attach  func(pid int) (stop func() error, err error) // instead of a command
	needs   string                                       // the program that must be there; "" = none
}

// tools lists what is compared.
func tools(memtrace string) []tool {
	trace := func(name string, flags ...string) tool {
		command := []string{memtrace, "--pid", "{pid}", "--quiet", "--ready-file", "{ready}", "-o", "{dir}/run.json"}
		return tool{name: "memtrace " + name, command: append(command, flags...), needs: memtrace}
	}
	const probes = `uprobe:{libc}:malloc { @[tid] = count(); @b[tid] = sum(arg0); } uprobe:{libc}:free { @f[tid] = count(); }`
	return []tool{
		{name: "empty probes", attach: emptyProbes},
		trace("counts, sampled stacks", "--probes", "alloc", "--round", "none", "--max-overhead", "off"),
		trace("--exact", "--probes", "alloc", "--round", "none", "--exact"),
		trace("default (bound 10 %)"),
		trace("locks only", "--probes", "lock", "--round", "none", "--max-overhead", "off"),
		{name: "bpftrace, counts", needs: "bpftrace", command: []string{"bpftrace", "-p", "{pid}", "-e", probes}},
		{name: "bcc memleak", needs: "memleak-bpfcc", command: []string{"memleak-bpfcc", "-p", "{pid}", "3600"}},
		{name: "heaptrack", needs: "heaptrack", prefix: []string{"heaptrack", "-r", "-o", "{dir}/heaptrack"}},
		{name: "valgrind massif", needs: "valgrind", prefix: []string{"valgrind", "-q", "--tool=massif", "--massif-out-file={dir}/massif"}},
	}
}

// attached is a tool at work.
type attached struct {
	process *exec.Cmd
	stop    func() error
}

// usage is what a tool itself took.
type usage struct {
	cpu time.Duration
	rss int64 // bytes
}

// start attaches the tool to a process and returns when it is at work.
func (t tool) start(pid int, directory string) (*attached, error) {
	if t.attach != nil {
		stop, err := t.attach(pid)
		return &attached{stop: stop}, err
	}
	ready := filepath.Join(directory, "ready")
	if err := os.RemoveAll(ready); err != nil {
		return nil, fmt.Errorf("make room for %s: %w", t.name, err)
	}
	libc, err := libraryOf(pid)
	if err != nil {
		return nil, err
	}
	words := replaced(t.command, "{pid}", strconv.Itoa(pid), "{dir}", directory, "{ready}", ready, "{libc}", libc)
	a := &attached{process: exec.Command(words[0], words[1:]...)}
	var complaints tail
	a.process.Stderr = &complaints
	if err := a.process.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", t.name, err)
	}
	if err := waitForProbes(pid, ready); err != nil {
		_, _ = a.end()
		return nil, fmt.Errorf("%s: %w: %s", t.name, err, complaints.String())
	}
	return a, nil
}

// end ends the tool and tells what it took.
func (a *attached) end() (usage, error) {
	if a.process == nil {
		return usage{}, a.stop()
	}
	if err := a.process.Process.Signal(os.Interrupt); err != nil {
		return usage{}, fmt.Errorf("end %s: %w", a.process.Path, err)
	}
	kill := time.AfterFunc(30*time.Second, func() { a.process.Process.Kill() })
	defer kill.Stop()
	// Tools end with all kinds of statuses when they are interrupted.
	_ = a.process.Wait()
	spent, ok := a.process.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return usage{}, nil
	}
	return usage{time.Duration(spent.Utime.Nano() + spent.Stime.Nano()), spent.Maxrss << 10}, nil
}
