package finding

import (
	"strings"
	"testing"
	"time"

	"memtrace/tracer/recording"
)

// tenSeconds is the length of the hand-made traces.
const tenSeconds = int64(10 * time.Second)

// lockTrace is a recording of locks and of what the scheduler did; the calls follow from
// the locks.
func lockTrace(locks []recording.Lock, threads ...recording.ScheduledThread) *recording.Recording {
	rec := &recording.Recording{
		Session:    recording.Session{DurationNS: tenSeconds},
		Locks:      &recording.Locks{Locks: locks},
		Scheduling: &recording.Scheduling{Threads: threads},
	}
	for _, l := range locks {
		c := &rec.Locks.Calls
		c.Waits += l.Waits + l.EAgain
		c.Slept += l.Waits
		c.EAgain += l.EAgain
		c.Wakes += l.Wakes
		c.EmptyWakes += l.EmptyWakes
	}
	return rec
}

// eight gives a lock eight threads that share its waits and wakes.
func eight(l recording.Lock) recording.Lock {
	if l.Kind == "" {
		l.Kind = "mutex"
	}
	l.Name = "the lock"
	l.QueueMean = float64(l.WaitNS.Total) / (float64(tenSeconds) * l.BusyFraction)
	for tid := range 8 {
		l.Threads = append(l.Threads, recording.LockThread{TID: 100 + tid, Waits: l.Waits / 8, Wakes: l.Wakes / 8, WaitNS: l.WaitNS.Total / 8})
	}
	return l
}

// eightThreads are threads that switch so often in all, a second, and wait for a CPU.
func eightThreads(voluntary, nonvoluntary uint64, cpu, queued time.Duration) []recording.ScheduledThread {
	var threads []recording.ScheduledThread
	for tid := range 8 {
		threads = append(threads, recording.ScheduledThread{
			TID: 100 + tid, Voluntary: voluntary * 10 / 8, Nonvoluntary: nonvoluntary * 10 / 8,
			CPUNS: int64(cpu) / 8, RunnableWaitNS: int64(queued) / 8,
		})
	}
	return threads
}

// TestLockFindings judges traces with the figures of known workloads: eight threads on two
// processors, ten seconds.
func TestLockFindings(t *testing.T) {
	convoy := eight(recording.Lock{
		Waits: 400_000, Wakes: 400_000, Handoffs: 400_000, HandoffsEffective: 400_000, WaitNS: recording.WaitTimes{Total: 6 * tenSeconds, P50: 140_000},
		HandoffNS: recording.HandoffTimes{P50: 6_000}, Hold: recording.Hold{P50: 55_000, OnCPU: 2e9, Asleep: 7e9, Count: 400_000},
		BusyFraction: 1, Rotation: 50_000, ConvoyFraction: 1,
	})
	saturated := eight(recording.Lock{
		Waits: 50_000, Wakes: 50_000, EAgain: 100, Handoffs: 50_000, HandoffsEffective: 25_000, HandoffsFutile: 25_000, WaitNS: recording.WaitTimes{Total: 7 * tenSeconds, P50: 1_400_000},
		HandoffNS: recording.HandoffTimes{P50: 6_000}, Hold: recording.Hold{P50: 200_000, OnCPU: 9e9, Count: 25_000}, BusyFraction: 1, Rotation: 6_000,
	})
	pi := convoy
	pi.HandoffNS.P50, pi.Hold = 9_000, recording.Hold{P50: 3_000, OnCPU: 2e9, Count: 400_000}
	long := eight(recording.Lock{
		Waits: 4_000, Wakes: 4_000, EmptyWakes: 520, EAgain: 4, Handoffs: 3_480, HandoffsEffective: 500, HandoffsFutile: 2_980,
		WaitNS: recording.WaitTimes{Total: 5 * tenSeconds, P50: 15e6}, Hold: recording.Hold{P50: 20e6, Asleep: 9e9, Count: 500}, BusyFraction: 0.95, Rotation: 1,
	})
	barging := eight(recording.Lock{
		Waits: 240_000, Wakes: 1_000_000, EmptyWakes: 820_000, EAgain: 650_000, Handoffs: 180_000, HandoffsFutile: 100_000,
		WaitNS: recording.WaitTimes{Total: tenSeconds * 2, P50: 30_000}, Hold: recording.Hold{P50: 3_000}, BusyFraction: 0.5, Rotation: 0.2,
	})
	oneArena := eight(recording.Lock{
		Kind: "arena", Waits: 10_000, Wakes: 260_000, EmptyWakes: 252_000, EAgain: 250_000, Handoffs: 8_000,
		WaitNS: recording.WaitTimes{Total: 2e9, P50: 40_000}, BusyFraction: 0.1, Rotation: 0.03,
	})
	pool := eight(recording.Lock{
		Kind: "condvar", Waits: 3_000, Wakes: 3_000, EmptyWakes: 1_440, Handoffs: 1_560,
		WaitNS: recording.WaitTimes{Total: 8 * tenSeconds, P50: 20e6}, BusyFraction: 1, Rotation: 500,
	})
	queue := eight(recording.Lock{
		Kind: "semaphore", Waits: 3_000, Handoffs: 3_000, WaitNS: recording.WaitTimes{Total: 8 * tenSeconds, P50: 20e6}, BusyFraction: 1, Rotation: 500,
	})
	queue.Threads = append(queue.Threads, recording.LockThread{TID: 99, Wakes: 3_000})
	limiter := eight(recording.Lock{
		Kind: "semaphore", Waits: 3_000, Wakes: 3_000, Handoffs: 3_000, WaitNS: recording.WaitTimes{Total: 5 * tenSeconds, P50: 12e6}, Hold: recording.Hold{P50: 6e6, OnCPU: 1e9, Count: 160}, BusyFraction: 1, Rotation: 300,
	})
	occasional := eight(recording.Lock{
		Waits: 200, Wakes: 210, EmptyWakes: 10, Handoffs: 200, WaitNS: recording.WaitTimes{Total: 2e7, P50: 80_000}, Hold: recording.Hold{P50: 20_000}, BusyFraction: 0.002, Rotation: 1,
	})
	startup := eight(recording.Lock{Waits: 16, Wakes: 16, Handoffs: 16, WaitNS: recording.WaitTimes{Total: 3e9, P50: 2e8}, BusyFraction: 0.1, Rotation: 2})
	python := eight(recording.Lock{
		Kind: "condvar", Waits: 2_600, Wakes: 1_000, Timeouts: 2_000, Handoffs: 600, WaitNS: recording.WaitTimes{Total: 13e9, P50: 4_700_000}, BusyFraction: 0.7, Rotation: 1,
	})
	python.Name = "_PyRuntime+0x1b0"
	busy := eightThreads(300, 1400, 19*time.Second, 58*time.Second)
	calm := eightThreads(300, 30, time.Second, 50*time.Millisecond)
	tests := []struct {
		name    string
		rec     *recording.Recording
		want    map[string]recording.Severity
		summary string
	}{
		{"convoy, holder sleeps", lockTrace([]recording.Lock{convoy}, eightThreads(42_000, 16_000, 8*time.Second, 10*time.Second)...),
			map[string]recording.Severity{"lock-convoy": recording.High}, "holders sleep"},
		{"saturated lock", lockTrace([]recording.Lock{saturated}, eightThreads(5_000, 1_000, 10*time.Second, time.Second)...),
			map[string]recording.Severity{"lock-convoy": recording.High}, "taken again"},
		{"priority inheritance", lockTrace([]recording.Lock{pi}, eightThreads(42_000, 16_000, 8*time.Second, 10*time.Second)...),
			map[string]recording.Severity{"lock-convoy": recording.High}, "handing it on takes"},
		{"one long holder", lockTrace([]recording.Lock{long}, eightThreads(6_000, 400, time.Second, time.Second)...),
			map[string]recording.Severity{"lock-contention": recording.High}, "slept at the lock"},
		{"barging lock", lockTrace([]recording.Lock{barging}, eightThreads(87_000, 11_000, 15*time.Second, 20*time.Second)...),
			map[string]recording.Severity{"futex-storm": recording.High}, "did nothing"},
		{"one arena", lockTrace([]recording.Lock{oneArena}, eightThreads(28_000, 5_000, 19*time.Second, 10*time.Second)...),
			map[string]recording.Severity{"arena-lock-contention": recording.Medium, "futex-storm": recording.Medium}, "arena"},
		{"too few processors", lockTrace(nil, busy...), map[string]recording.Severity{"cpu-contention": recording.High}, "preemptions"},
		{"too few processors, seldom a lock", lockTrace([]recording.Lock{occasional}, busy...), map[string]recording.Severity{"cpu-contention": recording.High}, "preemptions"},
		{"idle pool", lockTrace([]recording.Lock{pool}, calm...), nil, ""},
		{"queue behind a semaphore", lockTrace([]recording.Lock{queue}, calm...), nil, ""},
		{"semaphore that limits", lockTrace([]recording.Lock{limiter}, calm...), map[string]recording.Severity{"lock-contention": recording.High}, "slept"},
		{"a busy interpreter", lockTrace([]recording.Lock{python}, busy...), map[string]recording.Severity{"lock-contention": recording.High}, "slept"},
		{"healthy, short waits now and then", lockTrace([]recording.Lock{occasional}, calm...), nil, ""},
		{"a few long waits at the start", lockTrace([]recording.Lock{startup}, calm...), nil, ""},
		{"nothing at all", lockTrace(nil), nil, ""},
		{"busy but not short of processors", lockTrace(nil, eightThreads(300, 1400, 60*time.Second, 2*time.Second)...), nil, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			found := Judge(test.rec)
			got := severities(found)
			for kind, severity := range test.want {
				if got[kind] != severity {
					t.Errorf("%s: severity %q, want %q", kind, got[kind], severity)
				}
			}
			for kind := range got {
				if _, wanted := test.want[kind]; !wanted {
					t.Errorf("false alarm: %s", kind)
				}
			}
			for _, f := range found {
				if f.Summary == "" || f.Next == "" || len(f.Evidence) == 0 || f.Subject == "" {
					t.Errorf("%s is incomplete: %+v", f.Kind, f)
				}
			}
			if len(found) > 0 && !strings.Contains(found[0].Summary, test.summary) && !strings.Contains(found[len(found)-1].Summary, test.summary) {
				t.Errorf("no word of %q in %q", test.summary, found[0].Summary)
			}
		})
	}
}

// TestConvoyWithheld: where events were lost, a lock that never drains may be one whose
// draining was not seen.
func TestConvoyWithheld(t *testing.T) {
	lock := eight(recording.Lock{
		Waits: 400_000, Wakes: 400_000, Handoffs: 400_000, WaitNS: recording.WaitTimes{Total: 6 * tenSeconds, P50: 140_000},
		Hold: recording.Hold{P50: 55_000}, BusyFraction: 1, Rotation: 50_000,
	})
	rec := lockTrace([]recording.Lock{lock})
	if got := severities(Judge(rec)); got["lock-convoy"] != recording.High {
		t.Fatalf("no convoy: %v", got)
	}
	rec.Locks.Withheld = "events were lost"
	if got := severities(Judge(rec)); got["lock-convoy"] != "" {
		t.Errorf("a convoy is told of though events were lost: %v", got)
	}
}

// TestRelays: a fair lock with a word for each waiter shows only as a relay of threads.
func TestRelays(t *testing.T) {
	fair := recording.Chain{Name: "ticket", Length: 900_000, DurationNS: 9e9, TIDs: []int{1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}}
	dispatcher := fair
	dispatcher.TIDs = []int{9, 1, 9, 2, 9, 3, 9, 4, 9, 5, 9, 6, 9, 7, 9, 8}
	pair := fair
	pair.TIDs = []int{1, 2, 1, 2, 1, 2, 1, 2}
	short := fair
	short.Length, short.DurationNS = 40, 1e6
	slow := fair
	slow.Length = 300
	piece := fair
	piece.Length, piece.DurationNS = 9_000, 1e8
	tests := []struct {
		name  string
		chain recording.Chain
		gaps  bool
		want  recording.Severity
	}{
		{"fair lock", fair, false, recording.High},
		{"one thread gives work to the others", dispatcher, false, ""},
		{"two that answer each other", pair, false, ""},
		{"a burst", short, false, ""},
		{"a burst while the probes were in", short, true, ""},
		{"a slow round", slow, false, ""},
		{"a tenth of a second of ten", piece, false, ""},
		{"all that the probes saw at a time", piece, true, recording.Medium},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rec := lockTrace(nil)
			rec.Locks.Chains, rec.Locks.Estimated = []recording.Chain{test.chain}, test.gaps
			if got := severities(Judge(rec))["lock-convoy"]; got != test.want {
				t.Errorf("severity %q, want %q", got, test.want)
			}
		})
	}
}
