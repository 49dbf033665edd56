package soak

import (
	"fmt"
	"slices"

	"github.com/prometheus/procfs"

	"memtrace/tracer/vitals"
)

// program is what is watched: a process, and what tells its successor after a restart.
type program struct {
	pid        int
	startTicks uint64
	name       string
	exe        string
	command    []string
}

// identify looks at a process.
func identify(pid int) (program, error) {
	v, err := vitals.Read(pid)
	if err != nil {
		return program{}, err
	}
	process, err := procfs.NewProc(pid)
	if err != nil {
		return program{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	p := program{pid: pid, startTicks: v.StartTicks}
	if p.exe, err = process.Executable(); err != nil {
		return program{}, fmt.Errorf("look at the program of process %d: %w", pid, err)
	}
	if p.command, err = process.CmdLine(); err != nil {
		return program{}, fmt.Errorf("look at the command line of process %d: %w", pid, err)
	}
	if p.name, err = process.Comm(); err != nil {
		return program{}, fmt.Errorf("look at the name of process %d: %w", pid, err)
	}
	return p, nil
}

// successor finds the process that runs the same program with the same command line; of
// several the one that started first, which is the parent of the others.
func (p program) successor() (program, bool) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return program{}, false
	}
	var best program
	for _, process := range processes {
		exe, err := process.Executable()
		if err != nil || trimDeleted(exe) != trimDeleted(p.exe) {
			continue
		}
		command, err := process.CmdLine()
		if err != nil || !slices.Equal(command, p.command) {
			continue
		}
		candidate, err := identify(process.PID)
		if err != nil || candidate.startTicks < p.startTicks || (candidate.pid == p.pid && candidate.startTicks == p.startTicks) {
			continue
		}
		if best.pid == 0 || candidate.startTicks < best.startTicks {
			best = candidate
		}
	}
	return best, best.pid != 0
}

// trimDeleted drops what the kernel appends to the name of a file that was replaced, as an
// upgrade before the restart does.
func trimDeleted(path string) string {
	const deleted = " (deleted)"
	if n := len(path) - len(deleted); n >= 0 && path[n:] == deleted {
		return path[:n]
	}
	return path
}
