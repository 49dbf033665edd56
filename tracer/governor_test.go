package tracer

import (
	"context"
	"fmt"
	"testing"
	"time"

	"memtrace/internal/workload"
	"memtrace/tracer/recording"
)

// steadyCounts is what the workload steady.c tells.
type steadyCounts struct{ pairs, bytes, ns uint64 }

func askSteady(t testing.TB, p *workload.Process) (c steadyCounts) {
	t.Helper()
	p.Say(t, "tell")
	if _, err := fmt.Sscanf(p.Expect(t, "pairs "), "%d bytes %d ns %d", &c.pairs, &c.bytes, &c.ns); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestBound: a target that allocates a million times a second is traced only now and then,
// and what is told of the whole trace is what the target did.
//
// Another tracer on the same C library, or a machine that is short of processors, can slow the
// target down until there is nothing to bound: then it is tried again.
func TestBound(t *testing.T) {
	const attempts, busy = 5, 200_000
	for range attempts {
		rec, told, rate := traceSteady(t)
		if rate < busy {
			t.Logf("the target made only %.0f pairs a second: once more", rate)
			continue
		}
		checkBounded(t, rec, told)
		return
	}
	t.Errorf("the target never made %d pairs a second", busy)
}

// traceSteady traces the workload for a few seconds, under the default bound, and returns the
// pairs that it told of, and how many those are a second.
func traceSteady(t *testing.T) (rec *recording.Recording, told, rate float64) {
	p := workload.Start(t, workload.Build(t, "steady.c", "-fno-builtin"))
	p.Expect(t, "ready")
	s := startSession(t, Options{PID: p.PID(), Probes: []string{"alloc"}, Round: "none", MaxOverhead: 0.1})
	before := askSteady(t, p)
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
	defer cancel()
	if err := s.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	after := askSteady(t, p)
	rec, err := s.Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	told = float64(after.pairs - before.pairs)
	return rec, told, told / float64(after.ns-before.ns) * 1e9
}

func checkBounded(t *testing.T, rec *recording.Recording, told float64) {
	a := rec.Allocation
	t.Logf("overhead %+v; relative error %.3f", rec.Overhead, a.RelativeError)
	if c := rec.Overhead.Coverage["alloc"]; c <= 0 || c > 0.8 {
		t.Errorf("the probes were in for %.3f of the time", c)
	}
	if !a.Estimated || a.Lifetimes || a.RelativeError <= 0 || len(rec.Notes) == 0 {
		t.Errorf("estimated %v, lifetimes %v, error %v, notes %q", a.Estimated, a.Lifetimes, a.RelativeError, rec.Notes)
	}
	t.Logf("allocs %d told %.0f (%.3f) frees %d", a.Totals.Allocs, told, float64(a.Totals.Allocs)/told, a.Totals.Frees)
	// The cost of a hit on a machine that does other work as well is known roughly.
	if ratio := float64(a.Totals.Allocs) / told; ratio < 0.4 || ratio > 2.5 {
		t.Errorf("%d allocations, the workload made %.0f", a.Totals.Allocs, told)
	}
	want := []string{"often", "sometimes", "seldom"}
	for i, name := range want {
		if i >= len(a.Sites) || a.Sites[i].Stack[0].Function != name && a.Sites[i].Stack[1].Function != name {
			t.Fatalf("site %d is not in %s: %+v", i, name, a.Sites)
		}
	}
}
