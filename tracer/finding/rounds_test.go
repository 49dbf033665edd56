package finding

import (
	"fmt"
	"testing"
	"time"

	"memtrace/tracer/recording"
)

// roundTrace is a recording of one thread that does the same every round: 100 rounds a
// second of 64 KiB, all of it freed in the round.
func roundTrace(change func(*recording.RoundThread, *recording.Site)) *recording.Recording {
	const rounds, bytes = 1000, 64 << 10
	thread := recording.RoundThread{
		TID: 7, Name: "loop", Count: rounds, Wait: "epoll_wait", Timeouts: rounds,
		Bytes: recording.Distribution{Mean: bytes}, Allocs: recording.Distribution{Mean: 50},
		PeriodNS: recording.Distribution{Mean: 10e6}, CPUNS: recording.Distribution{Mean: 2e6},
	}
	site := recording.Site{
		Entry: "malloc", Allocs: 50 * rounds, AllocBytes: rounds * bytes, Sampled: 900, Frees: 50 * rounds, SameRoundFraction: 1, RoundsActive: rounds,
		Stack:   recording.Stack{{Function: "parse"}, {Function: "turn"}},
		Threads: []recording.SiteThread{{TID: 7, Name: "loop", AllocBytes: rounds * bytes, RoundBytes: rounds * bytes}},
	}
	change(&thread, &site)
	return &recording.Recording{
		Session: recording.Session{DurationNS: tenSeconds},
		Rounds:  &recording.Rounds{Count: rounds, PerThread: true, Threads: []recording.RoundThread{thread}},
		Allocation: &recording.Allocation{
			Lifetimes: true, Totals: recording.AllocationTotals{AllocBytes: site.AllocBytes}, Sites: []recording.Site{site},
		},
	}
}

// kinds lists what was found, with its weight.
func kinds(found []recording.Finding) map[string]recording.Severity {
	all := map[string]recording.Severity{}
	for _, f := range found {
		all[f.Kind] = f.Severity
	}
	return all
}

func TestRoundsThatDoNothing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*recording.RoundThread, *recording.Site)
		want   map[string]recording.Severity
	}{
		"nothing to do": {func(*recording.RoundThread, *recording.Site) {},
			map[string]recording.Severity{"round-churn": recording.Medium, "busy-idle": recording.Medium}},
		"requests come": {func(r *recording.RoundThread, _ *recording.Site) { r.Timeouts = 100 },
			map[string]recording.Severity{"round-churn": recording.Info}},
		"answers go out": {func(r *recording.RoundThread, _ *recording.Site) { r.Writes = 900 },
			map[string]recording.Severity{"round-churn": recording.Info}},
		"others are woken": {func(r *recording.RoundThread, _ *recording.Site) { r.Wakes = 900 },
			map[string]recording.Severity{"round-churn": recording.Info}},
		"a plain sleep": {func(r *recording.RoundThread, _ *recording.Site) { r.Wait = "nanosleep" },
			map[string]recording.Severity{"round-churn": recording.Info}},
		"little is burnt": {func(r *recording.RoundThread, _ *recording.Site) { r.CPUNS.Mean = 0.5e6 },
			map[string]recording.Severity{"round-churn": recording.Medium, "busy-idle": recording.Info}},
		"a quiet loop": {func(r *recording.RoundThread, _ *recording.Site) { r.CPUNS.Mean, r.Bytes.Mean = 1e4, 100 },
			map[string]recording.Severity{}},
		"kept": {func(_ *recording.RoundThread, s *recording.Site) { s.SameRoundFraction = 0.1 },
			map[string]recording.Severity{"busy-idle": recording.Medium}},
		"few rounds": {func(r *recording.RoundThread, _ *recording.Site) { r.Count = 5 },
			map[string]recording.Severity{}},
		"freed elsewhere": {func(r *recording.RoundThread, s *recording.Site) {
			s.SameRoundFraction, s.RemoteFreeFraction, r.Writes = 0.2, 0.9, 1000
		}, map[string]recording.Severity{"cross-thread-free": recording.Info}},
	} {
		t.Run(name, func(t *testing.T) {
			got := kinds(Judge(roundTrace(c.change)))
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("found %v, want %v", got, c.want)
			}
		})
	}
}

// liveTrace is a trace of two minutes whose one site has the given live bytes in MiB.
func liveTrace(heapGrowthMiB float64, live func(second int) float64) *recording.Recording {
	const seconds = 120
	rec := &recording.Recording{
		Session:    recording.Session{DurationNS: seconds * int64(time.Second)},
		HeapBefore: &recording.Heap{MallInfo: recording.MallInfo{Uordblks: 200 * mib}},
		Heap:       &recording.Heap{MallInfo: recording.MallInfo{Uordblks: uint64((200 + heapGrowthMiB) * mib)}},
	}
	site := recording.Site{Entry: "malloc", Allocs: 1000, Sampled: 500, Stack: recording.Stack{{Function: "remember"}}}
	for second := 2; second <= seconds; second += 2 {
		site.LiveSeries = append(site.LiveSeries, recording.LivePoint{TimeNS: int64(second) * int64(time.Second), LiveBytes: uint64(live(second) * mib)})
	}
	rec.Allocation = &recording.Allocation{Lifetimes: true, Sites: []recording.Site{site}, Totals: recording.AllocationTotals{AllocBytes: 1 << 40}}
	return rec
}

func TestLeakAndPlateau(t *testing.T) {
	grows := func(second int) float64 { return float64(second) / 2 }
	flat := func(second int) float64 { return 40 + float64(second%6)/4 }
	fills := func(second int) float64 { return 60 * (1 - 1/(1+float64(second)/10)) }
	short := liveTrace(60, grows)
	short.Session.DurationNS = tenSeconds
	unread := liveTrace(60, grows)
	unread.Heap, unread.HeapBefore = nil, nil
	for name, c := range map[string]struct {
		rec  *recording.Recording
		want map[string]recording.Severity
	}{
		"grows":                      {liveTrace(60, grows), map[string]recording.Severity{"leak": recording.Medium}},
		"turns over slowly":          {liveTrace(0, grows), map[string]recording.Severity{"plateau": recording.Info}},
		"flat":                       {liveTrace(0, flat), map[string]recording.Severity{"plateau": recording.Info}},
		"fills":                      {liveTrace(55, fills), map[string]recording.Severity{}},
		"too short":                  {short, map[string]recording.Severity{}},
		"the heap could not be read": {unread, map[string]recording.Severity{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := kinds(Judge(c.rec)); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("found %v, want %v", got, c.want)
			}
		})
	}
}
