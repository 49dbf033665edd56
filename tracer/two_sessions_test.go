package tracer

import (
	"testing"

	"memtrace/internal/workload"
)

// TestTwoSessions: while one process is traced with return probes, the kernel puts its
// return trampoline into every process that is probed at the same places. The figures of
// both stay exact.
func TestTwoSessions(t *testing.T) {
	program := workload.Build(t, "counts.c", "-fno-builtin", "-fno-omit-frame-pointer")
	options := Options{Probes: []string{"alloc"}, Exact: true, Round: "none"}
	first := workload.Start(t, program, "1", "10")
	first.Expect(t, "ready")
	options.PID = first.PID()
	s1 := startSession(t, options)
	second := workload.Start(t, program, "2", "10")
	second.Expect(t, "ready")
	options.PID, options.Exact = second.PID(), false
	s2 := startSession(t, options)
	first.Say(t, "go")
	second.Say(t, "go")
	told1, _ := toldThreads(t, first, 1)
	told2, _ := toldThreads(t, second, 2)
	first.Expect(t, "done")
	second.Expect(t, "done")
	checkThreads(t, finishSession(t, s1), told1)
	for _, got := range finishSession(t, s2).Allocation.Threads {
		want, known := told2[got.TID]
		// Without --exact failed calls count, but not those of realloc that are too large.
		if !known || got.Frees != want.Frees || got.FreeBytes != want.FreeBytes || got.Reallocs != want.Reallocs {
			t.Errorf("thread %d: %+v, want %+v", got.TID, got, want)
		}
	}
}
