package tracer

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"memtrace/internal/workload"
	"memtrace/tracer/finding"
	"memtrace/tracer/recording"
)

// Verdicts are judged over this much time. A verdict that is due may take several traces on
// a machine that has much else to do; one that is wrong may not come once.
const (
	verdictTrace = 2 * time.Second
	verdictTries = 3
)

// judgeTarget traces a process for a while and returns its high and medium findings.
func judgeTarget(t *testing.T, pid int, d time.Duration) (kinds []string, found []recording.Finding) {
	t.Helper()
	s, err := Open(t.Context(), Options{PID: pid, Probes: []string{"lock", "sched"}, Duration: d})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the session: %v", err)
		}
	}()
	if err := s.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	rec, err := s.Record(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range finding.Judge(rec) {
		if f.Severity != recording.Info {
			kinds, found = append(kinds, f.Kind), append(found, f)
		}
	}
	return kinds, found
}

// expectVerdict traces until the verdict is the right one, a few times at most.
func expectVerdict(t *testing.T, pid int, want, never []string) {
	t.Helper()
	for try := 1; ; try++ {
		kinds, found := judgeTarget(t, pid, verdictTrace)
		right := slices.ContainsFunc(want, func(kind string) bool { return slices.Contains(kinds, kind) })
		for _, kind := range never {
			right = right && !slices.Contains(kinds, kind)
		}
		if right {
			return
		}
		if try == verdictTries {
			t.Fatalf("want one of %v and none of %v, found %s", want, never, told(found))
		}
	}
}

// expectSilence traces several times and fails at the first finding of the kinds.
func expectSilence(t *testing.T, pid, times int, d time.Duration, never ...string) {
	t.Helper()
	for i := range times {
		kinds, found := judgeTarget(t, pid, d)
		for _, kind := range kinds {
			if len(never) == 0 || slices.Contains(never, kind) {
				t.Fatalf("false alarm in trace %d: %s", i+1, told(found))
			}
		}
	}
}

// told writes findings for the message of a test.
func told(found []recording.Finding) string {
	text := fmt.Sprintf("%d findings", len(found))
	for _, f := range found {
		text += fmt.Sprintf("\n%s %s: %s: %s %v", f.Severity, f.Kind, f.Subject, f.Summary, f.Evidence)
	}
	return text
}

// lockKinds are the findings that blame a lock.
var lockKinds = []string{"lock-convoy", "lock-contention", "arena-lock-contention", "futex-storm"}

// TestLockVerdicts: what looks alike from outside is told apart.
func TestLockVerdicts(t *testing.T) {
	program := workload.Build(t, "contend.c")
	tests := []struct {
		way         string
		want, never []string
	}{
		{"convoy", []string{"lock-convoy"}, []string{"lock-contention", "cpu-contention", "futex-storm"}},
		{"fifo", []string{"lock-convoy"}, []string{"lock-contention", "cpu-contention"}},
		{"pi", []string{"lock-convoy"}, []string{"lock-contention", "cpu-contention"}},
		{"saturated", []string{"lock-convoy", "lock-contention"}, []string{"cpu-contention"}},
		{"longholder", []string{"lock-contention"}, []string{"lock-convoy", "cpu-contention", "futex-storm"}},
		{"cpu", []string{"cpu-contention"}, lockKinds},
		{"arena", []string{"arena-lock-contention"}, []string{"lock-convoy", "lock-contention", "cpu-contention"}},
		{"rwlock", []string{"lock-contention"}, []string{"lock-convoy", "cpu-contention"}},
		{"semaphore", []string{"lock-contention"}, []string{"lock-convoy", "cpu-contention"}},
	}
	for _, test := range tests {
		t.Run(test.way, func(t *testing.T) {
			p := workload.Start(t, program, test.way)
			p.Expect(t, "ready")
			expectVerdict(t, p.PID(), test.want, test.never)
		})
	}
}

// TestLockSilence: where threads wait for work, or seldom for each other, nothing is told.
func TestLockSilence(t *testing.T) {
	program := workload.Build(t, "contend.c")
	tests := []struct {
		way   string
		times int
		trace time.Duration
		never []string // empty = nothing at all may be told
	}{
		{"healthy", 20, time.Second / 2, nil},
		{"idle", 20, time.Second / 5, nil},
		{"pool", 3, verdictTrace, nil},
		{"queue", 3, verdictTrace, nil},
		{"parking", 3, verdictTrace, nil},
		// Woken for nothing, or asking often for what is mostly free, is no convoy.
		{"herd", 2, verdictTrace, []string{"lock-convoy", "arena-lock-contention"}},
		{"barging", 2, verdictTrace, []string{"lock-convoy", "arena-lock-contention"}},
	}
	for _, test := range tests {
		t.Run(test.way, func(t *testing.T) {
			p := workload.Start(t, program, test.way)
			p.Expect(t, "ready")
			expectSilence(t, p.PID(), test.times, test.trace, test.never...)
		})
	}
}
