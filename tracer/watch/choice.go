package watch

import (
	"fmt"
	"strings"

	"github.com/prometheus/procfs"

	"memtrace/tracer/cgroup"
)

// One chooses a single process.
func One(pid int) func() ([]int, error) {
	return func() ([]int, error) { return []int{pid}, nil }
}

// Named chooses all processes of a name, as /proc/PID/comm has it (at most 15 characters).
func Named(comm string) func() ([]int, error) {
	if len(comm) > longestComm {
		comm = comm[:longestComm]
	}
	return func() ([]int, error) {
		processes, err := procfs.AllProcs()
		if err != nil {
			return nil, fmt.Errorf("list the processes: %w", err)
		}
		var pids []int
		for _, process := range processes {
			if name, err := process.Comm(); err == nil && strings.TrimSpace(name) == comm {
				pids = append(pids, process.PID)
			}
		}
		return pids, nil
	}
}

// longestComm is TASK_COMM_LEN less its terminator (include/linux/sched.h).
const longestComm = 15

// InGroup chooses all processes of a control group and the groups below it.
func InGroup(path string) func() ([]int, error) {
	return func() ([]int, error) { return cgroup.PIDs(path) }
}

// startOf returns when a process started, in ticks since boot; a zombie is not alive.
func startOf(pid int) (ticks uint64, alive bool) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, false
	}
	stat, err := process.Stat()
	if err != nil || stat.State == "Z" || stat.State == "X" {
		return 0, false
	}
	return stat.Starttime, true
}

// CommOf returns a process's name, empty when it is gone.
func CommOf(pid int) string {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return ""
	}
	comm, err := process.Comm()
	if err != nil {
		return ""
	}
	return comm
}
