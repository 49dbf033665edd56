package tracer

import (
	"strconv"
	"testing"

	"memtrace/internal/workload"
	"memtrace/tracer/recording"
)

// TestIdentities: threads that had the same id one after the other are kept apart, and
// children, which are other processes, count for nothing.
func TestIdentities(t *testing.T) {
	p := workload.Start(t, workload.Build(t, "identities.c"))
	p.Expect(t, "ready")
	s := startSession(t, Options{PID: p.PID(), Probes: []string{"alloc"}, Exact: true, Round: "none"})
	p.Say(t, "go")
	tid, err := strconv.Atoi(p.Expect(t, "tid "))
	if err != nil {
		t.Fatal(err)
	}
	p.Expect(t, "done")
	rec := finishSession(t, s)
	var same []recording.AllocationThread
	for _, thread := range rec.Allocation.Threads {
		if thread.TID == tid {
			same = append(same, thread)
		}
	}
	if len(same) != 2 || same[0].Allocs != 5 || same[0].AllocBytes != 1000 || same[1].Allocs != 3 || same[1].AllocBytes != 300 {
		t.Errorf("threads with id %d: %+v", tid, same)
	}
	for _, class := range rec.Allocation.Sizes {
		if class.UptoBytes == 512 && class.AllocBytes >= 1000*300 {
			t.Errorf("blocks of a child were counted: %+v", class)
		}
	}
	checkLosses(t, rec)
}
