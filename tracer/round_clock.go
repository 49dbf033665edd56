package tracer

import (
	"fmt"

	"memtrace/bpf"
)

// attachClock begins rounds by the clock.
func (f *roundFamily) attachClock() error {
	f.beside.start(f.spec.every, f.clockBoundary)
	return f.clockBoundary()
}

// clockBoundary ends a round of the process and begins the next, as boundary of
// bpf/round_process.h does where a thread of the target passes one.
func (f *roundFamily) clockBoundary() error {
	course := f.kernel.maps.Course
	e := bpf.RoundRoundEvent{StartNs: uint64(monotonicNS()), Flags: bpf.RoundRoundFlagsROUND_BOUNDARY}
	if err := course.Lookup(bpf.SharedCoursePartCOURSE_ROUND, &e.Index); err != nil {
		return fmt.Errorf("read the number of rounds: %w", err)
	}
	e.Index++
	if err := course.Put(bpf.SharedCoursePartCOURSE_ROUND, e.Index); err != nil {
		return fmt.Errorf("count a round: %w", err)
	}
	if err := course.Lookup(bpf.SharedCoursePartCOURSE_GAPS, &e.Gaps); err != nil {
		return fmt.Errorf("read how often probes were out: %w", err)
	}
	if now, err := processCPU(f.tracee.pid); err == nil { // a process that has ended has none
		e.CpuNs = uint64(now)
	}
	slots, err := f.kernel.usedSlots()
	if err != nil {
		return err
	}
	threads, err := readSlots[bpf.RoundAllocThread](f.objects.AllocThreads, slots)
	if err != nil {
		return err
	}
	for i := range threads {
		e.Allocs += threads[i].Allocs
		e.AllocBytes += threads[i].AllocBytes
		e.Frees += threads[i].Frees
		e.FreeBytes += threads[i].FreeBytes
	}
	f.log.boundary(e)
	return nil
}
