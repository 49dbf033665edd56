package tracer

import (
	"fmt"
	"testing"

	"memtrace/internal/workload"
)

// TestAllProbes: every family of probes loads and attaches on this kernel, together, in exact
// and in sampled traces, and has something to say.
func TestAllProbes(t *testing.T) {
	for _, exact := range []bool{false, true} {
		t.Run(fmt.Sprintf("exact %v", exact), func(t *testing.T) {
			p := workload.Start(t, workload.Build(t, "calls.c"))
			p.Expect(t, "ready")
			s := startSession(t, Options{PID: p.PID(), Exact: exact, FollowForks: true})
			p.Say(t, "500 4")
			p.Expect(t, "done")
			rec := finishSession(t, s)
			if rec.Allocation == nil || rec.Allocation.Totals.Allocs < 2000 {
				t.Errorf("allocation: %+v", rec.Allocation)
			}
			if rec.Scheduling == nil || rec.Heap == nil {
				t.Errorf("scheduling %v, heap %v", rec.Scheduling, rec.Heap)
			}
			checkLosses(t, rec)
		})
	}
}
