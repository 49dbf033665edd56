package tracer

import (
	"context"
	"sort"

	"memtrace/bpf"
	"memtrace/tracer/recording"
)

// collect fills the scheduling section.
func (f *schedFamily) collect(_ context.Context, rec *recording.Recording, names stackNames) error {
	if f.link != nil {
		if err := f.settle(); err != nil {
			return err
		}
	}
	slots, err := f.kernel.usedSlots()
	if err != nil {
		return err
	}
	left, err := readSlots[bpf.SchedSchedThread](f.objects.SchedThreads, slots)
	if err != nil {
		return err
	}
	settled, err := readSlots[bpf.SchedSchedThread](f.objects.SchedSettled, slots)
	if err != nil {
		return err
	}
	s := &recording.Scheduling{Threads: []recording.ScheduledThread{}}
	for slot := range left {
		t, queued := &left[slot], uint64(0)
		// A thread that has ended since an earlier settlement has left the CPU after it.
		if settled[slot].AtNs > t.AtNs {
			queued = settled[slot].SleptNs[bpf.SchedSchedSleepSLEEP_NONE] - t.SleptNs[bpf.SchedSchedSleepSLEEP_NONE]
			t = &settled[slot]
		}
		if t.AtNs != 0 {
			s.Threads = append(s.Threads, scheduledThread(t, int64(queued), names.thread(uint32(slot))))
		}
	}
	sort.SliceStable(s.Threads, func(i, j int) bool { return s.Threads[i].CPUNS > s.Threads[j].CPUNS })
	rec.Scheduling = s
	if !f.runnable {
		rec.Notes = append(rec.Notes, "this kernel does not count how long threads wait for a CPU (CONFIG_SCHED_INFO): that time is among what they slept")
	}
	return nil
}

// scheduledThread is what the kernel half knows of a thread since the trace began. A thread
// that waits for a CPU now has been queued for some nanoseconds that the kernel counts later.
func scheduledThread(t *bpf.SchedSchedThread, queued int64, who threadName) recording.ScheduledThread {
	return recording.ScheduledThread{
		TID: who.tid, Name: who.name,
		CPUNS:          int64(t.Last.CpuNs - t.First.CpuNs + t.SleptNs[bpf.SchedSchedSleepSLEEP_RUNS]),
		Voluntary:      t.Last.Voluntary - t.First.Voluntary,
		Nonvoluntary:   t.Last.Nonvoluntary - t.First.Nonvoluntary,
		RunnableWaitNS: int64(t.Last.RunnableNs-t.First.RunnableNs) + queued,
		FutexWaitNS:    int64(t.SleptNs[bpf.SchedSchedSleepSLEEP_FUTEX]),
		IdleWaitNS:     int64(t.SleptNs[bpf.SchedSchedSleepSLEEP_IDLE]),
		OtherWaitNS:    int64(t.SleptNs[bpf.SchedSchedSleepSLEEP_OTHER]),
	}
}
