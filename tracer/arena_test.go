package tracer

import (
	"fmt"
	"testing"

	"memtrace/internal/workload"
	"memtrace/tracer/recording"
)

// toldArenas reads the lines "arena TID HEAP": which thread's first block lies in which heap.
func toldArenas(t *testing.T, p *workload.Process, count int) map[int]recording.Address {
	t.Helper()
	told := map[int]recording.Address{}
	for range count {
		var tid int
		var heap uint64
		line := p.Expect(t, "arena ")
		if _, err := fmt.Sscanf(line, "%d %v", &tid, &heap); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		told[tid] = recording.Address(heap)
	}
	return told
}

// TestArenas compares who was given which arena with what the program's threads say of their
// own blocks; by probes in arena_get2, and by what malloc maps where that is not found.
func TestArenas(t *testing.T) {
	for _, method := range []string{"uprobes", "mmap"} {
		t.Run(method, func(t *testing.T) {
			const threads = 6
			p := workload.Start(t, workload.Build(t, "arenas.c"), fmt.Sprint(threads))
			p.Expect(t, "ready")
			s, err := Open(t.Context(), Options{PID: p.PID(), Probes: []string{"arena", "lock"}, Round: "none"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			if method == "mmap" {
				forgetArenaGet(s)
			}
			if err := s.Attach(t.Context()); err != nil {
				t.Fatal(err)
			}
			p.Say(t, "go")
			told := toldArenas(t, p, threads)
			counted := number(t, p.Expect(t, "arenas "))
			again := toldArenas(t, p, 1)
			threshold := number(t, p.Expect(t, "threshold "))
			var tid, returned int
			if line := p.Expect(t, "trim "); line != "" {
				if _, err := fmt.Sscan(line, &tid, &returned); err != nil {
					t.Fatal(err)
				}
			}
			p.Expect(t, "done")
			rec := finishSession(t, s)
			checkLosses(t, rec)
			a := rec.Arenas
			if len(a.Created) != counted-1 {
				t.Errorf("%d arenas created, malloc_info counts %d besides the main one", len(a.Created), counted-1)
			}
			checkArenaEvents(t, a.Created, told)
			if a.Method == "uprobes" {
				checkArenaEvents(t, a.Reused, again)
			} else if len(a.Reused) != 0 || len(rec.Notes) == 0 {
				t.Errorf("reused %v, notes %q", a.Reused, rec.Notes)
			}
			checkRise(t, a, threshold)
			checkTrim(t, a, tid, returned)
			p.Say(t, "end")
		})
	}
}

// forgetArenaGet makes the family do without arena_get2.
func forgetArenaGet(s *Session) {
	for _, f := range s.families {
		if f, ok := f.(*arenaFamily); ok {
			f.get = 0
		}
	}
}

func number(t *testing.T, text string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return n
}

func checkArenaEvents(t *testing.T, events []recording.ArenaEvent, told map[int]recording.Address) {
	t.Helper()
	const heapBytes = 64 << 20
	if len(events) != len(told) {
		t.Errorf("%d events, the program tells of %d", len(events), len(told))
	}
	for _, e := range events {
		if heap := e.Arena &^ (heapBytes - 1); heap != told[e.TID] {
			t.Errorf("thread %d has arena %v, it says %v", e.TID, e.Arena, told[e.TID])
		}
		if e.Cause != "first-allocation" || e.TimeNS <= 0 || e.Stack[0].Function != "first_block" {
			t.Errorf("thread %d: cause %q at %d ns, by %q", e.TID, e.Cause, e.TimeNS, e.Stack[0].Function)
		}
	}
}

func checkRise(t *testing.T, a *recording.Arenas, threshold int) {
	t.Helper()
	if len(a.Thresholds) != 1 {
		t.Fatalf("%d rises of the mmap threshold, want 1", len(a.Thresholds))
	}
	r := a.Thresholds[0]
	if int(r.AfterBytes) != threshold || r.BeforeBytes != 128<<10 || r.Stack[0].Function != "free_large" {
		t.Errorf("raised from %d to %d by %q, want to %d by free_large", r.BeforeBytes, r.AfterBytes, r.Stack[0].Function, threshold)
	}
}

// checkTrim expects the trim of 8191 blocks of 4 KiB between blocks in use.
func checkTrim(t *testing.T, a *recording.Arenas, tid, returned int) {
	t.Helper()
	if len(a.Trims) != 1 {
		t.Fatalf("%d trims, want 1", len(a.Trims))
	}
	trim := a.Trims[0]
	// Before Linux 6.2 each thread keeps up to 64 pages of each kind to itself before it tells.
	const least = 8191*4096 - 3*64*4096
	if trim.TID != tid || trim.Returned != (returned == 1) || trim.DurationNS <= 0 || trim.Stack[0].Function != "trim_holes" {
		t.Errorf("trim %+v, want of thread %d", trim, tid)
	}
	if gone := int64(trim.RSSBeforeBytes) - int64(trim.RSSAfterBytes); gone < least || gone > least+(4<<20) {
		t.Errorf("the trim returned %d bytes, want about %d", gone, least)
	}
}
