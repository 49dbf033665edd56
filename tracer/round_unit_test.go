package tracer

import (
	"strings"
	"testing"
	"time"

	"memtrace/bpf"
	"memtrace/tracer/recording"
)

func TestParseRound(t *testing.T) {
	for spec, want := range map[string]roundSpec{
		"auto":                     {kind: roundsAuto},
		"none":                     {},
		"func:poll":                {kind: roundsFunction, name: "poll"},
		"func:/lib/a.so:poll":      {kind: roundsFunction, path: "/lib/a.so", name: "poll"},
		"func:ns::loop::turn":      {kind: roundsFunction, name: "ns::loop::turn"},
		"func:a.so:ns::loop::turn": {kind: roundsFunction, path: "a.so", name: "ns::loop::turn"},
		"usdt:libc:setjmp":         {kind: roundsMarker, path: "libc", name: "setjmp"},
		"log:tick: done":           {kind: roundsLog, name: "tick: done"},
		"every:60s":                {kind: roundsEvery, every: time.Minute},
	} {
		if got, err := parseRound(spec); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", spec, got, err, want)
		}
	}
	for _, spec := range []string{"", "auto:", "none:x", "func:", "func::x", "func:a.so:", "usdt:x", "usdt::x", "log:", "log:a\nb",
		"log:" + strings.Repeat("x", 65), "every:", "every:0s", "every:1ms", "every:-1s", "rounds"} {
		if err := CheckRound(spec); err == nil || !strings.Contains(err.Error(), "want") && !strings.Contains(err.Error(), "line feed") {
			t.Errorf("%q: %v, want a refusal that tells what would be right", spec, err)
		}
	}
}

// TestAutomaton: the automaton finds what strings.Contains finds, at the byte where it ends.
func TestAutomaton(t *testing.T) {
	for _, text := range []string{"a", "aab", "abab", "aaaa", "tick round", "abcabd"} {
		rows := automaton(text)
		for _, line := range []string{"aaab", "abababab", "tick tick round", "abcabcabd", "xaabaab", "aaaaaa", ""} {
			state := 0
			for i := range len(line) {
				state = int(rows[state].Next[line[i]])
				if got, want := state == len(text), strings.HasSuffix(line[:i+1], text); got != want {
					t.Errorf("%q in %q: found %t, want %t", text, line[:i+1], got, want)
				}
			}
		}
	}
}

// TestTally: percentiles are exact with few values, and within half a percent with many.
func TestTally(t *testing.T) {
	var few, many tally
	for value := range uint64(100) {
		few.add(value + 1)
	}
	for value := range uint64(100000) {
		many.add(1000 * (value + 1))
	}
	if p := few.percentiles(0.5, 0.99); p[0] != 50 || p[1] != 99 {
		t.Errorf("percentiles of 1 to 100: %v", p)
	}
	for i, want := range []float64{50e6, 99e6} {
		if got := many.percentiles(0.5, 0.99)[i]; got < 0.995*want || got > 1.005*want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if p := (&tally{}).percentiles(0.5, 0.99); p[0] != 0 || p[1] != 0 {
		t.Errorf("percentiles of nothing: %v", p)
	}
}

// TestBoundaries: rounds between boundaries that come out of order, with one that is lost, and
// a gap of the allocation probes.
func TestBoundaries(t *testing.T) {
	var b boundaries
	var rounds []bpf.RoundRoundEvent
	keep := func(e *bpf.RoundRoundEvent) {
		if !incomplete(e) {
			rounds = append(rounds, *e)
		}
	}
	at := func(index, allocs, gaps uint64) bpf.RoundRoundEvent {
		return bpf.RoundRoundEvent{Index: index, StartNs: 1000 * index, Allocs: allocs, Gaps: gaps}
	}
	for _, e := range []bpf.RoundRoundEvent{at(1, 10, 0), at(3, 35, 0), at(2, 15, 0)} {
		b.add(e)
		b.settle(false, keep)
	}
	for _, e := range []bpf.RoundRoundEvent{at(5, 60, 0), at(6, 61, 2), at(7, 64, 2)} {
		b.add(e)
	}
	b.settle(true, keep)
	if len(rounds) != 3 || rounds[0].Allocs != 5 || rounds[1].Allocs != 20 || rounds[2].Allocs != 3 || rounds[2].DurationNs != 1000 {
		t.Errorf("rounds: %+v", rounds)
	}
	if b.sums.Count != 4 || b.sums.Lost != 2 || b.sums.Incomplete != 1 || b.sums.Allocs != 28 {
		t.Errorf("sums: %+v", b.sums)
	}
}

// TestSeriesIsThinnedEvenly: whatever its length, the series spans all rounds in equal steps.
func TestSeriesIsThinnedEvenly(t *testing.T) {
	for _, rounds := range []uint64{1, 255, 256, 1000, 100000} {
		var s roundSeries
		for index := range rounds {
			s.add(recording.Round{Index: index})
		}
		if len(s.rounds) == 0 || len(s.rounds) >= maxSeries {
			t.Fatalf("%d of %d rounds", len(s.rounds), rounds)
		}
		for i, round := range s.rounds {
			if round.Index != uint64(i)*s.every {
				t.Fatalf("of %d rounds the %d. kept is %d", rounds, i, round.Index)
			}
		}
		if last := s.rounds[len(s.rounds)-1].Index; last+s.every < rounds {
			t.Errorf("the last of %d rounds that is kept is %d", rounds, last)
		}
	}
}

// TestShareRounds: in a trace with gaps a site has its part of what complete rounds allocate.
func TestShareRounds(t *testing.T) {
	rec := &recording.Recording{
		Rounds: &recording.Rounds{PerThread: true, Threads: []recording.RoundThread{{TID: 7, Count: 100, Bytes: recording.Distribution{Mean: 1000}}}},
		Allocation: &recording.Allocation{Estimated: true, Sites: []recording.Site{
			{BytesPerRound: 300, AllocsPerRound: 30, Threads: []recording.SiteThread{{TID: 7, RoundBytes: 6000}}},
			{BytesPerRound: 100, AllocsPerRound: 1, Threads: []recording.SiteThread{{TID: 7, RoundBytes: 2000}, {TID: 8, RoundBytes: 5}}},
		}},
	}
	shareRounds(rec)
	for i, want := range []float64{750, 250} {
		if got := rec.Allocation.Sites[i].BytesPerRound; got != want {
			t.Errorf("site %d: %v bytes a round, want %v", i, got, want)
		}
	}
	if got := rec.Allocation.Sites[0].AllocsPerRound; got != 75 {
		t.Errorf("%v allocations a round, want 75", got)
	}
}
