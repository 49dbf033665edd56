package tracer

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"memtrace/internal/workload"
	"memtrace/tracer/recording"
)

// roundCase is a run of the workload rounds.c.
type roundCase struct {
	spec     string
	periodUS int
	rounds   int
	count    int // blocks a round, shared by the threads
	kept     int // more at each of two places: half of the one and all of the other are freed by the next round
	threads  int
	exact    bool
}

const roundBlock = 1000 // bytes

// run traces the workload and returns the recording and the median lifetime in nanoseconds
// of the blocks that the next round frees, as the workload has measured it.
func (c roundCase) run(t *testing.T, program string) (*recording.Recording, float64) {
	t.Helper()
	p := workload.Start(t, program, fmt.Sprint(c.periodUS), fmt.Sprint(c.rounds), fmt.Sprint(c.count), fmt.Sprint(roundBlock), fmt.Sprint(c.kept), fmt.Sprint(c.threads))
	p.Expect(t, "ready")
	s := startSession(t, Options{PID: p.PID(), Probes: []string{"alloc"}, Exact: c.exact, SampleBytes: 4096, Round: c.spec})
	p.Say(t, "go")
	var lifetime float64
	if _, err := fmt.Sscan(p.Expect(t, "lifetime "), &lifetime); err != nil {
		t.Fatal(err)
	}
	p.Expect(t, "rounds ")
	return finishSession(t, s), lifetime
}

// check compares the rounds with what the workload does in each.
func (c roundCase) check(t *testing.T, rec *recording.Recording) {
	t.Helper()
	checkLosses(t, rec)
	r := rec.Rounds
	if r == nil || r.Count != uint64(c.rounds) || r.Missed != 0 || r.Incomplete != 0 {
		t.Fatalf("rounds %+v, want %d", r, c.rounds)
	}
	allocs := float64(c.count + 2*c.kept)
	if want := (recording.Distribution{Mean: allocs, P50: allocs, P99: allocs, Max: allocs}); r.Allocs != want {
		t.Errorf("allocations a round: %+v, want %+v", r.Allocs, want)
	}
	bytes := allocs * roundBlock
	if want := (recording.Distribution{Mean: bytes, P50: bytes, P99: bytes, Max: bytes}); r.Bytes != want {
		t.Errorf("bytes a round: %+v, want %+v", r.Bytes, want)
	}
	if len(r.Series) == 0 || len(r.Series) > maxSeries {
		t.Errorf("a series of %d rounds", len(r.Series))
	}
	var inBuckets uint64
	for _, bucket := range r.BytesHistogram {
		inBuckets += bucket.Rounds
		if bucket.Rounds > 0 && (float64(bucket.UptoBytes) < bytes || float64(bucket.UptoBytes) >= 2*bytes) {
			t.Errorf("%d rounds of up to %d bytes", bucket.Rounds, bucket.UptoBytes)
		}
	}
	if inBuckets != r.Count {
		t.Errorf("the histogram has %d rounds of %d", inBuckets, r.Count)
	}
}

// TestRoundsAreExact: every kind of boundary finds the same rounds, slow and fast, of one
// thread and of a pool; and counts them exactly, sampled or not.
func TestRoundsAreExact(t *testing.T) {
	program := workload.Build(t, "rounds.c", "-fno-builtin")
	function, line, marker := "func:begin_round", "log:round begins", "usdt:memtrace:round"
	for _, c := range []roundCase{
		{"auto", 1000000, 3, 50, 5, 1, true},
		{"auto", 20000, 30, 50, 5, 1, true},
		{"auto", 100, 2000, 54, 0, 1, false},
		{function, 20000, 30, 50, 5, 1, true},
		{function, 100, 2000, 40, 4, 8, true},
		{function, 100, 2000, 40, 4, 8, false},
		{line, 20000, 30, 50, 5, 8, true},
		{line, 100, 2000, 40, 4, 8, false},
		{marker, 20000, 30, 50, 5, 1, true},
		{marker, 100, 2000, 40, 4, 8, false},
	} {
		t.Run(fmt.Sprintf("%s every %d µs, %d threads, exact %t", c.spec, c.periodUS, c.threads, c.exact), func(t *testing.T) {
			rec, _ := c.run(t, program)
			c.check(t, rec)
		})
	}
}

// siteIn finds the sites whose stack begins in the function.
func siteIn(t *testing.T, rec *recording.Recording, function string) recording.Site {
	t.Helper()
	for _, site := range rec.Allocation.Sites {
		if len(site.Stack) > 0 && site.Stack[0].Function == function {
			return site
		}
	}
	t.Fatalf("no site in %s", function)
	return recording.Site{}
}

// TestLifetimes: which share of a site's blocks is freed in the round that made them, and how
// long the blocks live, by the program's own clock.
func TestLifetimes(t *testing.T) {
	program := workload.Build(t, "rounds.c", "-fno-builtin")
	for _, spec := range []string{"auto", "func:begin_round"} {
		for _, exact := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, exact %t", spec, exact), func(t *testing.T) {
				c := roundCase{spec, 20000, 100, 10, 20, 1, exact}
				rec, _ := c.run(t, program)
				within, carried := siteIn(t, rec, "allocate_round"), siteIn(t, rec, "carry_over")
				if within.SameRoundFraction != 1 || carried.RemoteFreeFraction != 0 {
					t.Errorf("%v of the blocks freed in their round, %v by another thread", within.SameRoundFraction, carried.RemoteFreeFraction)
				}
				// A sample of a thousand blocks is off by five standard deviations at most.
				tolerance := 0.0
				if !exact {
					tolerance = 5 * math.Sqrt(0.25/float64(carried.Sampled))
				}
				if off := math.Abs(carried.SameRoundFraction - 0.5); off > tolerance {
					t.Errorf("%v of %d blocks freed in their round, want a half", carried.SameRoundFraction, carried.Sampled)
				}
				if exact {
					checkSiteRounds(t, c, within, carried)
				}
			})
		}
	}
}

// checkSiteRounds: the last boundary begins a round in which nothing is allocated any more.
func checkSiteRounds(t *testing.T, c roundCase, within, carried recording.Site) {
	t.Helper()
	begun := float64(c.rounds + 1)
	if within.RoundsActive != uint64(c.rounds) || within.RoundVariation != 0 {
		t.Errorf("active in %d rounds, variation %v", within.RoundsActive, within.RoundVariation)
	}
	if got, want := within.AllocsPerRound, float64(c.count*c.rounds)/begun; math.Abs(got-want) > 1e-9 {
		t.Errorf("%v allocations a round, want %v", got, want)
	}
	if got, want := carried.BytesPerRound, float64(c.kept*roundBlock*c.rounds)/begun; math.Abs(got-want) > 1e-6 {
		t.Errorf("%v bytes a round, want %v", got, want)
	}
}

// TestMedianLifetime: the median that the program has measured, to 2 %.
func TestMedianLifetime(t *testing.T) {
	program := workload.Build(t, "rounds.c", "-fno-builtin")
	c := roundCase{"auto", 30000, 60, 0, 30, 1, true}
	rec, lifetime := c.run(t, program)
	site := siteIn(t, rec, "keep_block")
	if off := math.Abs(float64(site.LifetimeP50NS)/lifetime - 1); off > 0.02 {
		t.Errorf("half live less than %d ns, the program measured %.0f ns", site.LifetimeP50NS, lifetime)
	}
}

// TestRoundsByTheClock: rounds of the clock hold together all that is allocated.
func TestRoundsByTheClock(t *testing.T) {
	program := workload.Build(t, "rounds.c", "-fno-builtin")
	rec, _ := roundCase{"every:50ms", 5000, 100, 50, 0, 1, true}.run(t, program)
	if rec.Rounds.Count < 5 || rec.Rounds.PerThread {
		t.Fatalf("rounds %+v", rec.Rounds)
	}
	if sum := rec.Rounds.Allocs.Mean * float64(rec.Rounds.Count); sum > float64(rec.Allocation.Totals.Allocs) {
		t.Errorf("%v allocations in rounds, %d in all", sum, rec.Allocation.Totals.Allocs)
	}
}

// TestRoundsRefused: what the target does not have is refused before anything is attached,
// with what it has.
func TestRoundsRefused(t *testing.T) {
	program := workload.Build(t, "rounds.c", "-fno-builtin")
	p := workload.Start(t, program, "1000", "1", "1", "1", "0", "1")
	p.Expect(t, "ready")
	for spec, want := range map[string]string{
		"func:begin_rund":         "begin_round",
		"func:/no/such/lib.so:fn": "has not mapped /no/such/lib.so",
		"usdt:memtrace:rund":      "memtrace:round",
	} {
		s, err := Open(t.Context(), Options{PID: p.PID(), Round: spec})
		if err == nil {
			s.Close()
			t.Errorf("%s is accepted", spec)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it to tell %q", spec, err, want)
		}
	}
}
