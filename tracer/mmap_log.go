package tracer

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/prometheus/procfs"

	"memtrace/bpf"
	"memtrace/tracer/recording"
	"memtrace/tracer/target"
)

// mmapLog takes in the calls that the kernel half hands over, and keeps the books.
type mmapLog struct {
	mutex  sync.Mutex
	kernel *kernel
	tracee *tracee
	inside []target.Range // the allocators' code
	reader *ringbuf.Reader
	space  mappedSpace
	sites  map[uint64]*mmapCounts // by stack id
	totals recording.MmapTotals
	brk    uint64          // where the program break is, 0 = not known
	owners map[uint64]bool // stack id → the allocator made the call
	heaps  heapLog
	// watched is where the allocator keeps its mmap threshold, 0 = not known.
	watched uint64
}

// mmapCounts is what one site has mapped.
type mmapCounts struct{ maps, bytes uint64 }

// maxMmapSites bounds the sites; the totals count the rest all the same.
const maxMmapSites = 1 << 14

func openMmapLog(ring *ebpf.Map, k *kernel, t *tracee) (*mmapLog, error) {
	reader, err := ringbuf.NewReader(ring)
	if err != nil {
		return nil, fmt.Errorf("open the log of memory calls: %w", err)
	}
	return &mmapLog{
		kernel: k, tracee: t, inside: allocatorRanges(t), reader: reader,
		sites: map[uint64]*mmapCounts{}, owners: map[uint64]bool{}, heaps: newHeapLog(t),
	}, nil
}

// begin notes where the program break is before the first call is seen.
func (l *mmapLog) begin() {
	process, err := procfs.NewProc(l.tracee.pid)
	if err != nil {
		return
	}
	maps, err := process.ProcMaps()
	if err != nil {
		return // the first call of brk tells
	}
	for _, m := range maps {
		if m.Pathname == "[heap]" {
			l.brk = uint64(m.EndAddr)
		}
	}
}

// watchThreshold tells the kernel half where the allocator keeps its mmap threshold, and what
// it is now.
func (l *mmapLog) watchThreshold(address, bytes uint64) {
	l.heaps.threshold = bytes
	l.watched = address
}

// drain takes in what has come since.
func (l *mmapLog) drain() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	err := drainRing(l.reader, func(e *bpf.MmapMmapEvent) { l.add(e) })
	if err != nil {
		return fmt.Errorf("read the log of memory calls: %w", err)
	}
	l.heaps.settle()
	return nil
}

// drainRing hands the events of a ring buffer that are there to add, and waits for no more.
func drainRing[E any](reader *ringbuf.Reader, add func(*E)) error {
	reader.SetDeadline(time.Unix(1, 0)) // in the past
	var record ringbuf.Record
	size := int(unsafe.Sizeof(*new(E)))
	// Events may come faster than they can be read: no more than the ring holds at a time.
	for range reader.BufferSize() / size {
		err := reader.ReadInto(&record)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(record.RawSample) < size {
			return fmt.Errorf("an entry of %d bytes, %d expected", len(record.RawSample), size)
		}
		e := *(*E)(unsafe.Pointer(unsafe.SliceData(record.RawSample)))
		add(&e)
	}
	return nil
}

// add takes in one call.
func (l *mmapLog) add(e *bpf.MmapMmapEvent) {
	own := e.Allocators != 0 || l.ofAllocator(e.Stack)
	if own {
		l.heaps.add(e)
	}
	if failed(e) {
		return
	}
	switch e.Call {
	case bpf.MmapMemoryCallCALL_MMAP:
		l.mapped(uint64(e.Result), pages(e.Arguments[1]), siteOf(e, own))
	case bpf.MmapMemoryCallCALL_MUNMAP:
		l.unmapped(e.Arguments[0], pages(e.Arguments[1]), own)
	case bpf.MmapMemoryCallCALL_MREMAP:
		l.remapped(e, own)
	case bpf.MmapMemoryCallCALL_BRK:
		l.broke(uint64(e.Result), own)
	case bpf.MmapMemoryCallCALL_MADVISE:
		l.advised(e, own)
	}
}

// failed tells whether the kernel refused the call. Of munmap only the arguments can tell.
func failed(e *bpf.MmapMmapEvent) bool {
	const lastError = -4095
	if e.Call == bpf.MmapMemoryCallCALL_MUNMAP {
		return e.Arguments[1] == 0 || e.Arguments[0]%pageBytes() != 0
	}
	return e.Result < 0 && e.Result >= lastError
}

// ofAllocator tells whether the allocator's code is on the stack.
func (l *mmapLog) ofAllocator(stack uint64) bool {
	if stack == 0 {
		return false
	}
	known, seen := l.owners[stack]
	if seen {
		return known
	}
	stored, err := l.kernel.stack(stack)
	for _, address := range stored.Addresses {
		known = known || inRanges(l.inside, address)
	}
	if err == nil && len(l.owners) < maxMmapSites {
		l.owners[stack] = known
	}
	return known
}

func inRanges(ranges []target.Range, address uint64) bool {
	for _, r := range ranges {
		if address >= r.Start && address < r.End {
			return true
		}
	}
	return false
}

// siteOf is the site that a mapping belongs to. Stacks that were lost share one.
func siteOf(e *bpf.MmapMmapEvent, own bool) uint64 {
	const lostSite = 1<<64 - 1
	switch {
	case own:
		return allocatorSite
	case e.Stack == 0:
		return lostSite
	}
	return e.Stack
}

func pageBytes() uint64 { return uint64(os.Getpagesize()) }

// pages rounds a length up to whole pages, as the kernel does.
func pages(length uint64) uint64 { return (length + pageBytes() - 1) &^ (pageBytes() - 1) }

func (l *mmapLog) close() error { return l.reader.Close() }
