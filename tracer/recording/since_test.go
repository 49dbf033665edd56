package recording

import (
	"testing"
	"time"
)

// snapshot is a recording of a trace that began an hour ago, as long and with as much as said.
func snapshot(duration time.Duration, allocs uint64, sites ...Site) *Recording {
	return &Recording{
		Session: Session{Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), DurationNS: int64(duration)},
		Allocation: &Allocation{
			Totals:  AllocationTotals{Allocs: allocs, AllocBytes: allocs * 16},
			Threads: []AllocationThread{{PID: 1, TID: 2, Name: "worker", Allocs: allocs}},
			Sizes:   []SizeClass{{UptoBytes: 16, Allocs: allocs, AllocBytes: allocs * 16}},
			Sites:   sites,
		},
		Scheduling: &Scheduling{Threads: []ScheduledThread{{TID: 2, Name: "worker", CPUNS: int64(allocs), Voluntary: allocs}}},
	}
}

func TestSince(t *testing.T) {
	quiet := Site{Entry: "malloc", Stack: Stack{{Address: 1}}, Allocs: 5, AllocBytes: 80}
	early := Site{Entry: "malloc", Stack: Stack{{Address: 2}}, Allocs: 10, AllocBytes: 160}
	late := early
	late.Allocs, late.AllocBytes = 40, 640
	before, now := snapshot(60*time.Second, 100, quiet, early), snapshot(70*time.Second, 250, quiet, late)
	part := now.Since(before)
	if part.Session.DurationNS != int64(10*time.Second) || !part.Session.Started.Equal(before.Session.Started.Add(time.Minute)) {
		t.Errorf("the part lasts %v from %v", part.Session.Duration(), part.Session.Started)
	}
	a := part.Allocation
	if a.Totals.Allocs != 150 || a.Rate.AllocsPerSecond != 15 || a.Threads[0].Allocs != 150 || a.Sizes[0].AllocBytes != 150*16 {
		t.Errorf("the part has %+v", a)
	}
	if len(a.Sites) != 1 || a.Sites[0].Allocs != 30 || a.Sites[0].AllocBytes != 480 {
		t.Errorf("sites of the part: %+v", a.Sites)
	}
	if s := part.Scheduling.Threads[0]; s.CPUNS != 150 || s.Voluntary != 150 {
		t.Errorf("scheduling of the part: %+v", s)
	}
	if now.Allocation.Totals.Allocs != 250 || now.Allocation.Sites[1].Allocs != 40 {
		t.Error("the later snapshot has changed")
	}
	if len(part.Notes) == 0 {
		t.Error("nothing says that this is a part")
	}
}

// TestSinceCorrected: an estimate that was corrected downwards is no negative count.
func TestSinceCorrected(t *testing.T) {
	site := Site{Stack: Stack{{Address: 1}}, Allocs: 90}
	more := site
	more.Allocs = 100
	part := snapshot(2*time.Second, 90, site).Since(snapshot(time.Second, 100, more))
	if part.Allocation.Totals.Allocs != 0 || len(part.Allocation.Sites) != 0 {
		t.Errorf("the part has %+v", part.Allocation)
	}
}
