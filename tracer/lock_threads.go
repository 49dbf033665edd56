package tracer

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// liveThread is a thread of the target as memtrace's own PID namespace numbers it.
type liveThread struct {
	tid  int
	name string
}

// innerThreads lists the target's live threads by the ids that they have in its own PID
// namespace: these are what it writes into its locks.
func (t *tracee) innerThreads() map[int]liveThread {
	threads := map[int]liveThread{}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", t.pid))
	if err != nil {
		return threads // the process has ended
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", t.pid, tid))
		if err != nil {
			continue
		}
		thread, inner := liveThread{tid: tid}, tid
		for line := range strings.Lines(string(status)) {
			if name, found := strings.CutPrefix(line, "Name:\t"); found {
				thread.name = strings.TrimSuffix(name, "\n")
			}
			if list, found := strings.CutPrefix(line, "NSpid:"); found {
				if fields := strings.Fields(list); len(fields) > 0 {
					inner, _ = strconv.Atoi(fields[len(fields)-1])
				}
			}
		}
		threads[inner] = thread
	}
	return threads
}

// readMemory reads a process's memory, all of it or nothing.
func readMemory(pid int, address uint64, into []byte) error {
	local := []unix.Iovec{{Base: &into[0]}}
	local[0].SetLen(len(into))
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(address), Len: len(into)}}, 0)
	if err != nil {
		return fmt.Errorf("read memory of process %d: %w", pid, err)
	}
	if n != len(into) {
		return fmt.Errorf("read memory of process %d: %d of %d bytes at %#x", pid, n, len(into), address)
	}
	return nil
}
