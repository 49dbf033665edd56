package tracer

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"memtrace/bpf"
	"memtrace/symbolize"
	"memtrace/tracer/recording"
)

// names gives stacks and threads their names, and remembers them.
type names struct {
	kernel  *kernel
	tracee  *tracee
	mutex   sync.Mutex
	stacks  map[uint64]recording.Stack
	threads map[uint32]threadName
	// frozen: the target has become another program. What is named is the one that was
	// traced, by the symbolizer's last snapshot of it; 0 = its newest.
	frozen   bool
	snapshot int
}

var _ stackNames = (*names)(nil)

func newNames(k *kernel, t *tracee) *names {
	return &names{kernel: k, tracee: t, stacks: map[uint64]recording.Stack{}, threads: map[uint32]threadName{}}
}

// stack returns the named frames of a stored stack.
func (n *names) stack(id uint64) recording.Stack {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if known, ok := n.stacks[id]; ok {
		return known
	}
	stored, err := n.kernel.stack(id)
	if err != nil {
		return recording.Stack{{Unresolved: symbolize.StackLost}}
	}
	stored.Snapshot = n.snapshot
	named := recording.Stack(n.tracee.symbols.StackFrames(stored))
	n.stacks[id] = named
	return named
}

// freeze keeps the names as they are, and stacks named by an older snapshot of the mappings.
func (n *names) freeze(snapshot int) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if !n.frozen {
		n.frozen, n.snapshot = true, snapshot
	}
}

func (n *names) isFrozen() bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.frozen
}

// thread tells whose slot it is. Slots that all threads without one share are nobody's.
func (n *names) thread(slot uint32) threadName {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if known, ok := n.threads[slot]; ok {
		return known
	}
	if slot < firstSlot {
		return threadName{pid: n.tracee.pid, name: "(other threads)"}
	}
	var stored bpf.SharedThread
	if err := n.kernel.maps.Threads.Lookup(slot, &stored); err != nil || stored.Tid == 0 {
		return threadName{pid: n.tracee.pid, name: "(unknown thread)"}
	}
	named := threadName{pid: int(stored.Pid), tid: int(stored.Tid), name: unix.ByteSliceToString(int8sToBytes(stored.Name[:]))}
	n.threads[slot] = named
	return named
}

// refresh reads the names that the target's live threads have now: many name themselves
// only after their first allocation.
func (n *names) refresh() error {
	slots, err := n.kernel.usedSlots()
	if err != nil || n.isFrozen() {
		return err
	}
	newest := map[int]uint32{} // a thread id may have had several owners; the last slot is the living one's
	for slot := uint32(firstSlot); slot < slots; slot++ {
		newest[n.thread(slot).tid] = slot
	}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", n.tracee.pid))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the names of threads: %w", err)
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		slot, used := newest[tid]
		if err != nil || !used {
			continue
		}
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", n.tracee.pid, tid))
		if err != nil {
			continue // the thread has ended: it keeps the name it had
		}
		named := n.threads[slot]
		named.name = strings.TrimSuffix(string(comm), "\n")
		n.threads[slot] = named
	}
	return nil
}

// int8sToBytes reinterprets the characters of a C string.
func int8sToBytes(text []int8) []byte {
	bytes := make([]byte, len(text))
	for i, c := range text {
		bytes[i] = byte(c)
	}
	return bytes
}
