package tracer

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"memtrace/bpf"
)

// roundLog takes in the rounds that the kernel half hands over.
type roundLog struct {
	mutex      sync.Mutex
	tracee     *tracee
	tid        func(slot uint32) int
	reader     *ringbuf.Reader
	all        roundCourse
	threads    map[uint32]*roundCourse // by slot
	boundaries boundaries
}

// maxRoundThreads bounds the threads whose percentiles are kept apart.
const maxRoundThreads = 128

func openRoundLog(ring *ebpf.Map, t *tracee, tid func(slot uint32) int) (*roundLog, error) {
	reader, err := ringbuf.NewReader(ring)
	if err != nil {
		return nil, fmt.Errorf("open the log of rounds: %w", err)
	}
	return &roundLog{tracee: t, tid: tid, reader: reader, threads: map[uint32]*roundCourse{}}, nil
}

// drain takes in what has come since. The last call, when no more can come, says so.
func (l *roundLog) drain(last bool) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.reader.SetDeadline(time.Unix(1, 0)) // in the past: what is there, and no waiting
	var record ringbuf.Record
	// Boundaries may come faster than they can be read: no more than the ring holds at a time.
	for range l.reader.BufferSize() / int(unsafe.Sizeof(bpf.RoundRoundEvent{})) {
		err := l.reader.ReadInto(&record)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return fmt.Errorf("read the log of rounds: %w", err)
		}
		var e bpf.RoundRoundEvent
		if size := int(unsafe.Sizeof(e)); len(record.RawSample) < size {
			return fmt.Errorf("read the log of rounds: an entry of %d bytes, %d expected", len(record.RawSample), size)
		}
		e = *(*bpf.RoundRoundEvent)(unsafe.Pointer(unsafe.SliceData(record.RawSample)))
		if e.Flags&bpf.RoundRoundFlagsROUND_BOUNDARY != 0 {
			l.boundaries.add(e)
		} else {
			l.add(&e)
		}
	}
	l.boundaries.settle(last, func(e *bpf.RoundRoundEvent) {
		l.all.add(e, 0, l.tracee)
	})
	return nil
}

// add takes in a round of a thread.
func (l *roundLog) add(e *bpf.RoundRoundEvent) {
	tid := l.tid(e.Slot)
	l.all.add(e, tid, l.tracee)
	course, known := l.threads[e.Slot]
	if !known {
		if len(l.threads) == maxRoundThreads {
			return
		}
		course = &roundCourse{}
		l.threads[e.Slot] = course
	}
	course.add(e, tid, l.tracee)
}

// boundary takes in a boundary that user space has found.
func (l *roundLog) boundary(e bpf.RoundRoundEvent) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.boundaries.add(e)
}

func (l *roundLog) close() error { return l.reader.Close() }

// boundaries makes rounds of the process out of its numbered boundaries.
type boundaries struct {
	waiting []bpf.RoundRoundEvent // those that may still have a predecessor to come
	last    bpf.RoundRoundEvent
	sums    bpf.RoundRoundSums
}

func (b *boundaries) add(e bpf.RoundRoundEvent) { b.waiting = append(b.waiting, e) }

// maxWaiting is how many boundaries may wait for one before them: by then that is lost.
const maxWaiting = 256

// settle closes the rounds whose two boundaries are there. Processors hand boundaries over
// in no strict order, so one that is missing may still come, but for the last time.
func (b *boundaries) settle(last bool, round func(*bpf.RoundRoundEvent)) {
	slices.SortFunc(b.waiting, func(x, y bpf.RoundRoundEvent) int { return cmp.Compare(x.Index, y.Index) })
	done := 0
	for _, next := range b.waiting {
		gap := next.Index != b.last.Index+1
		if gap && !last && len(b.waiting)-done < maxWaiting {
			break
		}
		b.order(&next)
		if b.last.Index != 0 {
			b.close(&next, gap, round)
		}
		b.last = next
		done++
	}
	b.waiting = slices.Delete(b.waiting, 0, done)
}

// close makes the round between the last boundary and the next; where boundaries between
// them were lost there is none.
func (b *boundaries) close(next *bpf.RoundRoundEvent, gap bool, round func(*bpf.RoundRoundEvent)) {
	if gap {
		b.sums.Lost += next.Index - b.last.Index
		return
	}
	length := next.StartNs - b.last.StartNs
	e := bpf.RoundRoundEvent{
		Index: b.last.Index, StartNs: b.last.StartNs, DurationNs: length, PeriodNs: length,
		CpuNs: next.CpuNs - b.last.CpuNs, Allocs: next.Allocs - b.last.Allocs, AllocBytes: next.AllocBytes - b.last.AllocBytes,
		Frees: next.Frees - b.last.Frees, FreeBytes: next.FreeBytes - b.last.FreeBytes,
	}
	if next.Gaps != b.last.Gaps || next.Gaps%2 == 1 {
		e.Flags |= bpf.RoundRoundFlagsROUND_INCOMPLETE
	}
	addToSums(&b.sums, &e)
	round(&e)
}

// order sees to it that sums do not fall: of two boundaries at one moment the first may have
// seen what the second has not.
func (b *boundaries) order(next *bpf.RoundRoundEvent) {
	next.StartNs = max(next.StartNs, b.last.StartNs)
	next.CpuNs = max(next.CpuNs, b.last.CpuNs)
	next.Allocs, next.AllocBytes = max(next.Allocs, b.last.Allocs), max(next.AllocBytes, b.last.AllocBytes)
	next.Frees, next.FreeBytes = max(next.Frees, b.last.Frees), max(next.FreeBytes, b.last.FreeBytes)
}
