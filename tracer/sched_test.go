package tracer

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"memtrace/internal/workload"
	"memtrace/tracer/recording"
)

// procThread is what /proc says of a thread: its state, and the kernel's counters.
type procThread struct {
	state                   string
	voluntary, nonvoluntary uint64
	cpuNS, runnableNS       int64
}

// procThreads reads the counters of all threads of a process, by thread id.
func procThreads(t *testing.T, pid int) map[int]procThread {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	threads := map[int]procThread{}
	for _, task := range tasks {
		var tid int
		var p procThread
		if _, err := fmt.Sscan(task.Name(), &tid); err != nil {
			t.Fatal(err)
		}
		for name, value := range procFields(t, fmt.Sprintf("/proc/%d/task/%d/status", pid, tid)) {
			switch name {
			case "State":
				p.state = value[:1]
			case "voluntary_ctxt_switches":
				fmt.Sscan(value, &p.voluntary)
			case "nonvoluntary_ctxt_switches":
				fmt.Sscan(value, &p.nonvoluntary)
			}
		}
		schedstat, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Sscan(string(schedstat), &p.cpuNS, &p.runnableNS)
		threads[tid] = p
	}
	return threads
}

// procFields reads a file of lines "name: value".
func procFields(t *testing.T, path string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(content)) {
		if name, value, found := strings.Cut(line, ":"); found {
			fields[name] = strings.TrimSpace(value)
		}
	}
	return fields
}

// waitAllAsleep returns the counters once no thread runs, twice in a row with no switch between.
func waitAllAsleep(t *testing.T, pid int) map[int]procThread {
	t.Helper()
	var before map[int]procThread
	workload.Eventually(t, "all threads asleep", func() bool {
		now := procThreads(t, pid)
		still := len(now) == len(before)
		for tid, p := range now {
			still = still && p.state == "S" && p == before[tid]
		}
		before = now
		return still
	})
	return before
}

// schedWorkers is the number of threads of the workload but for the first.
const schedWorkers = 7

// TestSchedulingAgainstProc compares each thread with the kernel's own counters between two
// points at which all threads sleep, and its sleeps with what the workload knows: threads
// that are there when the trace begins, and threads that are born while it runs.
func TestSchedulingAgainstProc(t *testing.T) {
	for _, born := range []bool{false, true} {
		t.Run(fmt.Sprintf("born in the trace %v", born), func(t *testing.T) {
			p := workload.Start(t, workload.Build(t, "sched.c"))
			p.Expect(t, "ready")
			if !born {
				p.Say(t, "create")
				p.Expect(t, "born")
			}
			before := waitAllAsleep(t, p.PID())
			s := startSession(t, Options{PID: p.PID(), Probes: []string{"sched"}})
			begun := time.Now()
			if born {
				p.Say(t, "create")
				p.Expect(t, "born")
			}
			p.Say(t, "go")
			told := toldSleeps(t, p)
			after := waitAllAsleep(t, p.PID())
			inner := time.Since(begun)
			live, err := s.Record(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			rec := finishSession(t, s)
			for _, rec := range []*recording.Recording{live, rec} {
				checkScheduling(t, rec, before, after, told)
				checkParts(t, rec, before, inner, time.Duration(monotonicNS()-s.tracee.startedNS))
			}
		})
	}
}

// toldSleep is what a thread of the workload tells of itself.
type toldSleep struct {
	role   string
	asleep time.Duration
}

func toldSleeps(t *testing.T, p *workload.Process) map[int]toldSleep {
	t.Helper()
	told := map[int]toldSleep{}
	for range schedWorkers {
		var tid int
		var one toldSleep
		if _, err := fmt.Sscan(p.Expect(t, "thread "), &tid, &one.role, (*int64)(&one.asleep)); err != nil {
			t.Fatal(err)
		}
		told[tid] = one
	}
	return told
}

func checkScheduling(t *testing.T, rec *recording.Recording, before, after map[int]procThread, told map[int]toldSleep) {
	t.Helper()
	checkLosses(t, rec)
	if len(rec.Scheduling.Threads) != schedWorkers+1 {
		t.Errorf("%d threads, want %d", len(rec.Scheduling.Threads), schedWorkers+1)
	}
	for _, got := range rec.Scheduling.Threads {
		before, after, told := before[got.TID], after[got.TID], told[got.TID]
		if voluntary, nonvoluntary := after.voluntary-before.voluntary, after.nonvoluntary-before.nonvoluntary; got.Voluntary != voluntary || got.Nonvoluntary != nonvoluntary {
			t.Errorf("thread %d: %d voluntary and %d nonvoluntary switches, the kernel says %d and %d", got.TID, got.Voluntary, got.Nonvoluntary, voluntary, nonvoluntary)
		}
		if cpu, runnable := after.cpuNS-before.cpuNS, after.runnableNS-before.runnableNS; got.CPUNS != cpu || got.RunnableWaitNS != runnable {
			t.Errorf("thread %d: %d ns of CPU and %d ns of waiting for it, the kernel says %d and %d", got.TID, got.CPUNS, got.RunnableWaitNS, cpu, runnable)
		}
		slept := map[string]int64{"futex": got.FutexWaitNS, "idle": got.IdleWaitNS, "other": got.OtherWaitNS}
		if least := told.asleep * 98 / 100; time.Duration(slept[told.role]) < least {
			t.Errorf("thread %d slept %s in %s, must be at least %s", got.TID, time.Duration(slept[told.role]), told.role, least)
		}
	}
}

// checkParts makes sure that the parts of a thread's time add up to the trace, which took
// longer than inner and less than outer. The clocks of the scheduler and of the trace differ
// a little.
func checkParts(t *testing.T, rec *recording.Recording, before map[int]procThread, inner, outer time.Duration) {
	t.Helper()
	for _, got := range rec.Scheduling.Threads {
		parts := time.Duration(got.CPUNS + got.RunnableWaitNS + got.FutexWaitNS + got.IdleWaitNS + got.OtherWaitNS)
		if _, there := before[got.TID]; there && parts < inner*98/100 || parts > outer*102/100 {
			t.Errorf("thread %d: the parts add up to %s of %s to %s: %+v", got.TID, parts, inner, outer, got)
		}
	}
}

// TestSchedulingOfEnded: what ended threads did stays, and grows no more.
func TestSchedulingOfEnded(t *testing.T) {
	p := workload.Start(t, workload.Build(t, "sched.c"))
	p.Expect(t, "ready")
	s := startSession(t, Options{PID: p.PID(), Probes: []string{"sched"}})
	p.Say(t, "create")
	p.Expect(t, "born")
	p.Say(t, "go")
	told := toldSleeps(t, p)
	last := waitAllAsleep(t, p.PID())
	if _, err := s.Record(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Say(t, "end")
	if err := s.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	rec, err := s.Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkParts(t, rec, nil, 0, time.Duration(rec.Session.DurationNS))
	// A thread that is told to end runs once more; whether it sleeps before, nobody knows.
	for tid := range told {
		var found bool
		for _, got := range rec.Scheduling.Threads {
			found = found || got.TID == tid && got.Voluntary >= last[tid].voluntary && got.CPUNS > last[tid].cpuNS
		}
		if !found {
			t.Errorf("thread %d, which had %+v before it ended, is not among %+v", tid, last[tid], rec.Scheduling.Threads)
		}
	}
}

// TestSchedulingOfRunning: a thread that never leaves its CPU of its own accord is accounted
// for up to the end.
func TestSchedulingOfRunning(t *testing.T) {
	p := workload.StartCommand(t, exec.Command("/bin/sh", "-c", "echo ready; while :; do :; done"))
	p.Expect(t, "ready")
	s := startSession(t, Options{PID: p.PID(), Probes: []string{"sched"}})
	begun := time.Now()
	first := procThreads(t, p.PID())[p.PID()]
	workload.Eventually(t, "half a second of CPU time", func() bool {
		return procThreads(t, p.PID())[p.PID()].cpuNS > first.cpuNS+int64(time.Second/2)
	})
	inner := time.Since(begun)
	rec := finishSession(t, s)
	checkParts(t, rec, map[int]procThread{p.PID(): {}}, inner, time.Duration(monotonicNS()-s.tracee.startedNS))
	if got := rec.Scheduling.Threads[0]; got.CPUNS < int64(time.Second/2) {
		t.Errorf("%+v", got)
	}
}
