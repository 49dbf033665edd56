package tracer

import (
	"fmt"
	"math"

	"memtrace/tracer/recording"
)

// scale turns what was counted in windows into estimates of the whole trace, and leaves out
// what windows cannot tell: how long blocks live, and what lives.
func (f *allocFamily) scale(rec *recording.Recording) error {
	totals, relative, err := f.estimate()
	if err != nil {
		return err
	}
	a := rec.Allocation
	by := factors(a.Totals, totals)
	a.Totals, a.RelativeError, a.Lifetimes = totals, relative, false
	for i := range a.Threads {
		by.thread(&a.Threads[i])
	}
	for i := range a.Sizes {
		a.Sizes[i].Allocs, a.Sizes[i].AllocBytes = times(a.Sizes[i].Allocs, by.allocs), times(a.Sizes[i].AllocBytes, by.allocBytes)
	}
	for i := range a.Sites {
		by.site(&a.Sites[i])
	}
	if elapsed := rec.Session.Duration().Seconds(); elapsed > 0 {
		a.Rate.AllocsPerSecond, a.Rate.AllocBytesPerSecond = float64(totals.Allocs)/elapsed, float64(totals.AllocBytes)/elapsed
	}
	rec.Notes = append(rec.Notes, fmt.Sprintf("the allocation probes were in for %.1f %% of the time to hold the slowdown to %g %%: "+
		"figures are estimates; lifetimes and live bytes are left out: --max-overhead off tells them",
		f.share()*100, rec.Session.MaxOverhead*100))
	return nil
}

// scaling is how many times the whole trace is what was counted.
type scaling struct {
	allocs, allocBytes, frees, freeBytes, reallocs, reallocBytes float64
}

func factors(counted, estimated recording.AllocationTotals) scaling {
	ratio := func(whole, part uint64) float64 {
		if part == 0 {
			return 1
		}
		return max(1, float64(whole)/float64(part))
	}
	return scaling{
		allocs: ratio(estimated.Allocs, counted.Allocs), allocBytes: ratio(estimated.AllocBytes, counted.AllocBytes),
		frees: ratio(estimated.Frees, counted.Frees), freeBytes: ratio(estimated.FreeBytes, counted.FreeBytes),
		reallocs: ratio(estimated.Reallocs, counted.Reallocs), reallocBytes: ratio(estimated.ReallocBytes, counted.ReallocBytes),
	}
}

func times(n uint64, factor float64) uint64 { return uint64(math.Round(float64(n) * factor)) }

func (by scaling) thread(t *recording.AllocationThread) {
	t.Allocs, t.AllocBytes = times(t.Allocs, by.allocs), times(t.AllocBytes, by.allocBytes)
	t.Frees, t.FreeBytes = times(t.Frees, by.frees), times(t.FreeBytes, by.freeBytes)
	t.Reallocs, t.ReallocBytes = times(t.Reallocs, by.reallocs), times(t.ReallocBytes, by.reallocBytes)
	t.RemoteFrees = times(t.RemoteFrees, by.frees)
}

// site scales a site. What was followed from a block's birth on ended with each window.
func (by scaling) site(s *recording.Site) {
	s.Allocs, s.AllocBytes = times(s.Allocs, by.allocs), times(s.AllocBytes, by.allocBytes)
	for i := range s.Threads {
		s.Threads[i].Allocs, s.Threads[i].AllocBytes = times(s.Threads[i].Allocs, by.allocs), times(s.Threads[i].AllocBytes, by.allocBytes)
		s.Threads[i].RoundBytes = times(s.Threads[i].RoundBytes, by.allocBytes)
	}
	// Rounds went on while the probes were out; of many only a part was seen.
	s.RoundBytes, s.BytesPerRound, s.AllocsPerRound = times(s.RoundBytes, by.allocBytes), s.BytesPerRound*by.allocBytes, s.AllocsPerRound*by.allocs
	s.RoundVariation = 0
	s.Frees, s.FreeBytes, s.LiveBytes, s.LiveBlocks, s.LifetimeP50NS = 0, 0, 0, 0, 0
	s.SameRoundFraction, s.RemoteFreeFraction, s.LiveSeries = 0, 0, nil
}
