package compare

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"memtrace/tracer/recording"
)

const mib = 1 << 20

// soakOf makes a soak of the given levels of committed memory in MiB, five minutes apart;
// a negative level begins a new start of the program.
func soakOf(levels ...float64) *recording.Soak {
	soak := &recording.Soak{Header: recording.SoakHeader{Target: recording.Target{Command: "ledgerd", Exe: "/usr/bin/ledgerd"}}}
	pid := 100
	for i, level := range levels {
		at := time.Duration(i+1) * 5 * time.Minute
		if level < 0 {
			pid++
		}
		soak.Samples = append(soak.Samples, recording.Sample{PID: pid, StartTicks: uint64(pid), Start: level < 0, BootNS: int64(at), Heap: true,
			Time: time.Unix(0, int64(at)), CommittedBytes: uint64(math.Abs(level) * mib), LiveBytes: 44 * mib, Threads: 19})
	}
	return soak
}

// incident is the committed memory of a real service: 27 samples, then a restart with a cap.
func incident() (before, after []float64) {
	for i := range 27 {
		before = append(before, 1458+float64(i*7%5)-2)
	}
	return before, []float64{-610, 611, 611, 612, 612}
}

func TestSoaksOfAnIncident(t *testing.T) {
	was, is := incident()
	both := OfSoak(soakOf(slices.Concat(was, is)...))
	if len(both) != 2 {
		t.Fatalf("%d starts, want 2", len(both))
	}
	for name, c := range map[string]*recording.Comparison{
		"one file":  Sides(both[0], both[1]),
		"two files": Sides(OfSoak(soakOf(was...))[0], OfSoak(soakOf(is...))[0]),
	} {
		row, found := find(c.Changes, "committed")
		if !found || row.WithinNoise || math.Round((row.Ratio-1)*100) != -58 {
			t.Errorf("%s: committed %+v, want -58 %%", name, row)
		}
		if !strings.Contains(c.Summary, "committed memory fell 58 %, live unchanged") {
			t.Errorf("%s: %s", name, c.Summary)
		}
	}
}

// Two halves of one noisy plateau must not be told apart.
func TestNoiseIsNoChange(t *testing.T) {
	runs := OfSoak(soakOf(558, 527, 444, 461, 476, 486, 539, 461, -539, 461, 486, 527, 444, 558, 476, 461))
	c := Sides(runs[0], runs[1])
	row, _ := find(c.Changes, "committed")
	if !row.WithinNoise || judge(row) != recording.Same {
		t.Errorf("a change is claimed: %+v", row)
	}
}

// traceOf makes a recording of a minute with one site and locks.
func traceOf(bytesPerSecond float64, waits uint64, freeResident uint64, arenas int) *recording.Recording {
	rec := &recording.Recording{
		Target:     recording.Target{PID: 1, Exe: "/usr/bin/ledgerd", BuildID: "aa", Allocator: recording.Allocator{Name: "glibc", Version: "2.36"}},
		Session:    recording.Session{DurationNS: int64(time.Minute), SampleBytes: 65536, Probes: []string{"alloc", "lock"}},
		Allocation: &recording.Allocation{Totals: recording.AllocationTotals{AllocBytes: uint64(bytesPerSecond * 60), Allocs: 60_000}},
		Heap:       &recording.Heap{Arenas: make([]recording.Arena, arenas), MallInfo: recording.MallInfo{Uordblks: 44 * mib, Fordblks: freeResident}},
		Locks:      &recording.Locks{Locks: []recording.Lock{{Kind: "mutex", Waits: waits}, {Kind: "condvar", Waits: 1e6}}},
	}
	rec.Heap.Ledger.ArenaFreeResidentBytes = freeResident
	for i := range int64(60) {
		rec.Allocation.Series = append(rec.Allocation.Series, recording.AllocationPoint{TimeNS: (i + 1) * 1e9, Coverage: 1,
			Allocs: 1000, AllocBytes: uint64(bytesPerSecond * (1 + float64(i*7%5-2)/20))})
	}
	return rec
}

func site(function string, line int, bytes uint64) recording.Site {
	return recording.Site{Entry: "malloc", Allocs: bytes / 1024, AllocBytes: bytes, Sampled: bytes / 65536,
		Stack: recording.Stack{{Function: function, Line: line, Address: recording.Address(line)}, {Function: "main"}}}
}

func TestTheCapWorksAndCosts(t *testing.T) {
	before, after := traceOf(1e6, 600, 1200*mib, 16), traceOf(1.001e6, 2400, 504*mib, 2)
	c := Sides(OfRecording(before), OfRecording(after))
	for _, words := range []string{"retention fell 58 %, live unchanged, arenas 16 → 2: the cap works", "lock waits rose to 4 times: it costs", "unchanged: live memory, allocation"} {
		if !strings.Contains(c.Summary, words) {
			t.Errorf("%q lacks %q", c.Summary, words)
		}
	}
	if row, _ := find(c.Changes, "allocated"); !row.WithinNoise {
		t.Errorf("a tenth of a percent is within the noise: %+v", row)
	}
	if row, _ := find(c.Changes, "lock waits"); row.Before != 10 || row.WithinNoise {
		t.Errorf("parked threads do not count, four times is no noise: %+v", row)
	}
	if len(c.Warnings) != 0 {
		t.Errorf("warnings on comparable recordings: %q", c.Warnings)
	}
}

// Rates compare whatever the durations.
func TestDurationsAreNormalised(t *testing.T) {
	before, after := traceOf(1e6, 600, 0, 1), traceOf(1e6, 600, 0, 1)
	before.Allocation.Sites = []recording.Site{site("parse", 10, 60e6)}
	after.Allocation.Sites = []recording.Site{site("parse", 14, 180e6)}
	after.Session.DurationNS *= 3
	after.Allocation.Totals.AllocBytes *= 3
	c := Sides(OfRecording(before), OfRecording(after))
	if row, _ := find(c.Changes, "allocated"); math.Abs(row.Ratio-1) > 1e-9 {
		t.Errorf("the rate changed: %+v", row)
	}
	if len(c.Sites) != 0 || c.SitesUnchanged != 1 {
		t.Errorf("a site at another line of the same function changed: %+v", c.Sites)
	}
}

func TestSitesThatChanged(t *testing.T) {
	before, after := traceOf(1e6, 0, 0, 1), traceOf(1e6, 0, 0, 1)
	before.Allocation.Sites = []recording.Site{site("gone", 1, 40e6), site("same", 2, 30e6), site("grew", 3, 20e6), site("chance", 4, 5e5)}
	after.Allocation.Sites = []recording.Site{site("new", 1, 90e6), site("same", 2, 30.5e6), site("grew", 3, 45e6), site("chance", 4, 7e5)}
	c := Sides(OfRecording(before), OfRecording(after))
	var got []string
	for _, s := range c.Sites {
		got = append(got, s.Kind+" "+s.Stack[0].Function)
	}
	if want := []string{"appeared new", "vanished gone", "grew grew"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if c.SitesUnchanged != 2 {
		t.Errorf("%d unchanged, want 2", c.SitesUnchanged)
	}
}

func TestWarnings(t *testing.T) {
	for words, spoil := range map[string]func(*recording.Recording){
		"different programs": func(r *recording.Recording) { r.Target.Exe = "/usr/bin/other" },
		"different builds":   func(r *recording.Recording) { r.Target.BuildID = "bb" },
		"allocators differ":  func(r *recording.Recording) { r.Target.Allocator = recording.Allocator{Name: "jemalloc"} },
		"sampling differs":   func(r *recording.Recording) { r.Session.Exact = true },
		"probes differ":      func(r *recording.Recording) { r.Session.Probes = []string{"alloc"} },
		"scopes differ":      func(r *recording.Recording) { r.Session.Scope = "cgroup" },
		"10 times as long":   func(r *recording.Recording) { r.Session.DurationNS *= 10 },
		"machines differ":    func(r *recording.Recording) { r.Session.Arch = "arm64" },
		"were lost":          func(r *recording.Recording) { r.Losses.StacksLost = 1e6 },
	} {
		before, after := traceOf(1e6, 0, 0, 1), traceOf(1e6, 0, 0, 1)
		spoil(after)
		c := Sides(OfRecording(before), OfRecording(after))
		if !strings.Contains(strings.Join(c.Warnings, "\n"), words) {
			t.Errorf("no warning of %q: %q", words, c.Warnings)
		}
	}
}

// Whatever a file holds, the figures of a comparison can be written as JSON.
func TestOddValues(t *testing.T) {
	huge := func(sign float64) *recording.Recording {
		return &recording.Recording{Session: recording.Session{DurationNS: 1}, Rounds: &recording.Rounds{Count: 1, Bytes: recording.Distribution{Mean: sign * math.MaxFloat64}}}
	}
	for _, pair := range [][2]*recording.Recording{
		{huge(1), huge(-1)},
		{{}, {}}, {traceOf(0, 0, 0, 0), {}}, {traceOf(0, 0, 0, 0), traceOf(1e6, 5, 5, 5)}, {traceOf(1e6, 5, 5, 5), traceOf(0, 0, 0, 0)},
	} {
		c := Sides(OfRecording(pair[0]), OfRecording(pair[1]))
		for _, row := range c.Changes {
			for _, v := range []float64{row.Before, row.After, row.Difference, row.Ratio, row.Noise} {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("%s: %+v", row.Name, row)
				}
			}
		}
	}
}
