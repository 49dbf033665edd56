package tracer

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memtrace/internal/workload"
	"memtrace/tracer/recording"
)

// startSession opens and attaches a session to a process of the test.
func startSession(t testing.TB, o Options) *Session {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the session: %v", err)
		}
	})
	if err := s.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// finishSession ends the trace and returns what it found.
func finishSession(t testing.TB, s *Session) *recording.Recording {
	t.Helper()
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.Wait(ended); err != nil {
		t.Fatal(err)
	}
	rec, err := s.Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// toldThreads reads the lines "thread …" by which a workload tells what each thread did.
func toldThreads(t testing.TB, p *workload.Process, count int) (told map[int]recording.AllocationThread, failed uint64) {
	t.Helper()
	told = map[int]recording.AllocationThread{}
	for range count {
		var a recording.AllocationThread
		var lost uint64
		line := p.Expect(t, "thread ")
		if _, err := fmt.Sscan(line, &a.TID, &a.Allocs, &a.AllocBytes, &a.Frees, &a.FreeBytes, &a.Reallocs, &a.ReallocBytes, &lost, &a.RemoteFrees); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		failed += lost
		told[a.TID] = a
	}
	return told, failed
}

// TestExactCounts compares every thread's figures with those of a program that counts its
// own calls.
func TestExactCounts(t *testing.T) {
	for _, threads := range []int{1, 8} {
		for _, linking := range []string{"-Wl,-z,now", "-static"} {
			t.Run(fmt.Sprintf("%d threads %s", threads, linking), func(t *testing.T) {
				program := workload.Build(t, "counts.c", "-fno-builtin", "-fno-omit-frame-pointer", linking)
				p := workload.Start(t, program, fmt.Sprint(threads), "40")
				p.Expect(t, "ready")
				s := startSession(t, Options{PID: p.PID(), Probes: []string{"alloc"}, Exact: true, Round: "none"})
				p.Say(t, "go")
				told, failed := toldThreads(t, p, threads)
				p.Expect(t, "done")
				rec := finishSession(t, s)
				checkThreads(t, rec, told)
				if rec.Allocation.Totals.Failed != failed {
					t.Errorf("%d failed calls, the program made %d", rec.Allocation.Totals.Failed, failed)
				}
				checkLosses(t, rec)
				checkSums(t, rec)
			})
		}
	}
}

// checkThreads compares the recording's threads with what the program told.
func checkThreads(t *testing.T, rec *recording.Recording, told map[int]recording.AllocationThread) {
	t.Helper()
	seen := map[int]bool{}
	for _, got := range rec.Allocation.Threads {
		want, known := told[got.TID]
		if !known {
			t.Errorf("thread %d (%s) allocates, but should not: %+v", got.TID, got.Name, got)
			continue
		}
		seen[got.TID] = true
		want.Name = got.Name
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("thread %d (-program +memtrace):\n%s", got.TID, diff)
		}
	}
	for tid := range told {
		if !seen[tid] {
			t.Errorf("thread %d is missing", tid)
		}
	}
}

// checkLosses fails the test when anything was lost.
func checkLosses(t *testing.T, rec *recording.Recording) {
	t.Helper()
	l := rec.Losses
	if n := l.StacksLost + l.SitesLost + l.ThreadsLost + l.EventsLost + l.BlocksLost + l.MissedHits + l.FailedReads; n != 0 {
		t.Errorf("lost: %+v", l)
	}
}

// checkSums compares totals, sizes and sites, which must agree in an exact trace.
func checkSums(t *testing.T, rec *recording.Recording) {
	t.Helper()
	a := rec.Allocation
	var sizes, sites, shares recording.AllocationTotals
	var live uint64
	for _, class := range a.Sizes {
		sizes.Allocs += class.Allocs
		sizes.AllocBytes += class.AllocBytes
	}
	for _, site := range a.Sites {
		sites.Allocs += site.Allocs
		sites.AllocBytes += site.AllocBytes
		sites.Frees += site.Frees
		live += site.LiveBlocks
		for _, share := range site.Threads {
			shares.Allocs += share.Allocs
			shares.AllocBytes += share.AllocBytes
		}
	}
	for name, sum := range map[string]recording.AllocationTotals{"size classes": sizes, "sites": sites, "threads of sites": shares} {
		if sum.Allocs != a.Totals.Allocs || sum.AllocBytes != a.Totals.AllocBytes {
			t.Errorf("%s sum up to %d calls and %d bytes, the totals say %d and %d", name, sum.Allocs, sum.AllocBytes, a.Totals.Allocs, a.Totals.AllocBytes)
		}
	}
	if sites.Frees != a.Totals.Frees || live != 0 {
		t.Errorf("sites: %d released and %d live, want %d and 0", sites.Frees, live, a.Totals.Frees)
	}
}

// TestSampledCounts: without --exact the figures of threads are as exact, but for calls
// that fail, and the sites add up to them within what sampling allows.
func TestSampledCounts(t *testing.T) {
	const threads = 4
	program := workload.Build(t, "counts.c", "-fno-builtin", "-fno-omit-frame-pointer")
	p := workload.Start(t, program, fmt.Sprint(threads), "400")
	p.Expect(t, "ready")
	s := startSession(t, Options{PID: p.PID(), Probes: []string{"alloc"}, Round: "none"})
	p.Say(t, "go")
	told, _ := toldThreads(t, p, threads)
	p.Expect(t, "done")
	rec := finishSession(t, s)
	checkLosses(t, rec)
	var sites uint64
	for _, site := range rec.Allocation.Sites {
		sites += site.AllocBytes
	}
	total := rec.Allocation.Totals.AllocBytes
	if difference := float64(sites)/float64(total) - 1; difference < -0.1 || difference > 0.1 {
		t.Errorf("sites sum up to %d bytes, the threads to %d", sites, total)
	}
	for _, got := range rec.Allocation.Threads {
		want := told[got.TID]
		if got.Frees != want.Frees || got.FreeBytes != want.FreeBytes || got.Reallocs != want.Reallocs {
			t.Errorf("thread %d: %+v, want %+v", got.TID, got, want)
		}
		if strings.Contains(got.Name, "unknown") {
			t.Errorf("thread %d has no name", got.TID)
		}
	}
}
