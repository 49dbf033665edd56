package tracer

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"memtrace/internal/workload"
)

// TestFollowForks: every child that lives on is traced, also after it became another
// program, and kept apart from the others.
func TestFollowForks(t *testing.T) {
	const children = 3
	p := workload.Start(t, workload.Build(t, "forks.c"), strconv.Itoa(children))
	p.Expect(t, "ready")
	s := startSession(t, Options{PID: p.PID(), Probes: []string{"alloc"}, Exact: true, Round: "none", FollowForks: true})
	p.Say(t, "go")
	pids := map[int]bool{}
	for range children + 1 {
		pid, err := strconv.Atoi(p.Expect(t, "child "))
		if err != nil {
			t.Fatal(err)
		}
		pids[pid] = true
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(tracedNow(s, pids))
		}
	})
	workload.Eventually(t, "all children are traced as what they are now", func() bool { all, _ := tracedNow(s, pids); return all })
	p.Say(t, "go")
	p.Expect(t, "done")
	rec := finishSession(t, s)
	seen := map[uint64]int{} // bytes of a child → how many
	for _, thread := range rec.Allocation.Threads {
		if thread.PID == p.PID() || thread.Allocs == 0 {
			continue
		}
		if !pids[thread.PID] || thread.Allocs != 50 || thread.Frees != 50 {
			t.Errorf("thread %+v", thread)
		}
		seen[thread.AllocBytes]++
	}
	for _, bytes := range []uint64{50 * 100, 50 * 101, 50 * 102, 50 * 300} {
		if seen[bytes] != 1 {
			t.Errorf("%d children allocated %d bytes, want 1; all: %v", seen[bytes], bytes, seen)
		}
	}
	processes := map[int]bool{}
	for _, process := range rec.Target.Processes {
		processes[process.PID] = true
		if process.PID != p.PID() && process.Parent != p.PID() {
			t.Errorf("whose child is it? %+v", process)
		}
	}
	for pid := range pids {
		if !processes[pid] {
			t.Errorf("process %d is missing in %+v", pid, rec.Target.Processes)
		}
	}
	if want := uint64(4 * 50); rec.Allocation.Totals.Allocs < want {
		t.Errorf("%d allocations in all, the children made %d", rec.Allocation.Totals.Allocs, want)
	}
	checkLosses(t, rec)
}

// tracedNow tells whether sessions for exactly these processes are attached.
func tracedNow(s *Session, pids map[int]bool) (all bool, state string) {
	for _, f := range s.families {
		if f, ok := f.(*forkFamily); ok {
			f.mutex.Lock()
			defer f.mutex.Unlock()
			return attachedTo(f, pids), fmt.Sprintf("%v, ended %d, missed %+v", f.traced, len(f.done), f.lost)
		}
	}
	return false, "no family follows children"
}

// attachedTo tells whether all children are traced, one of them as the program it executed.
// The lock is held.
func attachedTo(f *forkFamily, pids map[int]bool) bool {
	again := false
	for pid := range pids {
		if f.traced[pid] == "" {
			return false
		}
		again = again || strings.Contains(f.traced[pid], "again")
	}
	return again
}

// TestForkStorm: children that come and go faster than they can be traced are counted, and
// nothing goes wrong.
func TestForkStorm(t *testing.T) {
	p := workload.Start(t, workload.Build(t, "forks.c"), "60")
	p.Expect(t, "ready")
	s := startSession(t, Options{PID: p.PID(), Probes: []string{"alloc"}, Round: "none", FollowForks: true})
	p.Say(t, "go")
	p.Expect(t, "made")
	p.Say(t, "go")
	p.Expect(t, "done")
	rec := finishSession(t, s)
	if len(rec.Notes) == 0 {
		t.Errorf("62 children in an instant, and no word about those that were missed: %+v", rec.Target.Processes)
	}
}
