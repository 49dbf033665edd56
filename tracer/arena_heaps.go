package tracer

import (
	"memtrace/bpf"
	"memtrace/tracer/heap"
)

// heapLog makes glibc's heaps out of the memory calls of the allocator itself: a mapping
// without access and without reserve becomes a heap when its first part is made writable.
// A heap that begins with an arena is a new arena; another belongs to an arena that is full.
type heapLog struct {
	pid     int
	pending map[uint32]pendingHeap // by thread slot
	refused map[uint32]bool        // the thread's last call of the allocator was refused
	made    []madeHeap
	grown   uint64
	shrunk  uint64
	rises   []thresholdRise
	// threshold is the mmap threshold as it was last seen, 0 = not known.
	threshold uint64
	dropped   uint64 // events beyond maxArenaEvents
}

// pendingHeap is address space that a thread has mapped for a heap.
type pendingHeap struct {
	start, end, stack uint64
	retry             bool
}

// madeHeap is a heap that was made. Its arena is 0 until that is known.
type madeHeap struct {
	base, stack, arena uint64
	ns                 uint64
	slot               uint32
	retry              bool
}

// thresholdRise is a free of a mapped block that raised the mmap threshold.
type thresholdRise struct {
	ns, before, after, stack uint64
	slot                     uint32
}

// maxArenaEvents bounds each list of events; more are counted as dropped.
const maxArenaEvents = 4096

func newHeapLog(t *tracee) heapLog {
	return heapLog{pid: t.pid, pending: map[uint32]pendingHeap{}, refused: map[uint32]bool{}}
}

const (
	protectionNone = 0
	flagFixed      = 0x10
	flagNoReserve  = 0x4000
)

// add takes in a call of the allocator.
func (h *heapLog) add(e *bpf.MmapMmapEvent) {
	refused := failed(e)
	switch {
	case refused:
	case e.Call == bpf.MmapMemoryCallCALL_MMAP && e.Arguments[2] == protectionNone && e.Arguments[3]&flagNoReserve != 0:
		start := uint64(e.Result)
		h.pending[e.Slot] = pendingHeap{start, start + e.Arguments[1], e.Stack, h.refused[e.Slot]}
	case e.Call == bpf.MmapMemoryCallCALL_MMAP && e.Arguments[2] == protectionNone && e.Arguments[3]&flagFixed != 0:
		h.shrunk++
	case e.Call == bpf.MmapMemoryCallCALL_MPROTECT:
		h.writable(e)
	case e.Call == bpf.MmapMemoryCallCALL_MADVISE && e.Arguments[2] == adviceDontNeed:
		h.shrunk++
	case e.Call == bpf.MmapMemoryCallCALL_MUNMAP:
		h.released(e)
	}
	h.refused[e.Slot] = refused
}

// writable tells a new heap from one that grows.
func (h *heapLog) writable(e *bpf.MmapMmapEvent) {
	pending, found := h.pending[e.Slot]
	base := e.Arguments[0]
	if !found || base < pending.start || base >= pending.end {
		h.grown++
		return
	}
	delete(h.pending, e.Slot)
	if len(h.made) == maxArenaEvents {
		h.dropped++
		return
	}
	h.made = append(h.made, madeHeap{base: base, stack: pending.stack, ns: e.Ns, slot: e.Slot, retry: pending.retry})
}

// released looks at what an unmapping says: a heap is gone, or a free raised the threshold.
func (h *heapLog) released(e *bpf.MmapMmapEvent) {
	for i := range h.made {
		if h.made[i].base == e.Arguments[0] && h.made[i].arena == 0 {
			h.made[i].arena = notArena
			h.shrunk++
		}
	}
	if e.Threshold == 0 || e.Threshold == h.threshold {
		return
	}
	before := h.threshold
	h.threshold = e.Threshold
	if before == 0 || e.Threshold < before {
		return // set by mallopt, or not known before
	}
	if len(h.rises) == maxArenaEvents {
		h.dropped++
		return
	}
	h.rises = append(h.rises, thresholdRise{e.Ns, before, e.Threshold, e.Stack, e.Slot})
}

// notArena marks a heap that belongs to an arena that was there before.
const notArena = 1

// settle asks the target which of the new heaps begin with an arena: a heap's first word
// points to its arena (heap_info, malloc/arena.c), which in an arena's first heap follows at
// once.
func (h *heapLog) settle() {
	const firstPage = 4096
	for i := range h.made {
		made := &h.made[i]
		if made.arena != 0 {
			continue
		}
		arena, err := heap.ReadWord(h.pid, made.base)
		switch {
		case err != nil || arena == 0: // gone, or not set up yet: another look comes
		case arena > made.base && arena < made.base+firstPage:
			made.arena = arena
		default:
			made.arena = notArena
		}
	}
}
