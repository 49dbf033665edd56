package finding

import (
	"fmt"
	"time"

	"memtrace/tracer/finding/trend"
	"memtrace/tracer/recording"
)

// What a leak takes: a trace that is long enough, a site whose live bytes grow steadily, and
// a heap that grows with it.
const (
	leakSpan   = time.Minute
	leakPoints = 24
	leakShare  = 0.5 // of the site's growth that the heap's must reach
	leakSites  = 5   // at most
	severeLeak = 64 << 20
	severeSpan = 10 * time.Minute
)

// leak says that a site's live bytes grow without end. Blocks from before the trace are not
// followed, so every site begins at nothing and a cache that turns over slowly looks as if
// it grew: only where the heap as a whole has grown as well is it called a leak.
func leak(rec *recording.Recording) []recording.Finding {
	if rec.Allocation == nil || !rec.Allocation.Lifetimes || rec.Session.Duration() < leakSpan {
		return nil
	}
	growth, known := heapGrowth(rec)
	if !known || growth <= 0 {
		return nil
	}
	found := []recording.Finding{}
	for i := range rec.Allocation.Sites {
		s := &rec.Allocation.Sites[i]
		verdict := trend.Judge(livePoints(s))
		if len(found) == leakSites {
			break
		}
		if len(s.LiveSeries) < leakPoints || verdict.Kind != trend.Leak || growth < leakShare*verdict.Drift {
			continue
		}
		found = append(found, leakOf(s, verdict, growth))
	}
	return found
}

// leakOf writes the finding.
func leakOf(s *recording.Site, v trend.Verdict, growth float64) recording.Finding {
	severity := recording.Medium
	if v.Span >= severeSpan && v.Slope >= severeLeak {
		severity = recording.High
	}
	where := siteName(s)
	return recording.Finding{
		Kind:     "leak",
		Severity: severity,
		Subject:  where,
		Summary: fmt.Sprintf("what %s allocates is not freed: %s live now, and it grows by %s an hour (95 %% sure: %s to %s); %s of its blocks were freed",
			where, size(s.LiveBytes), size(positive(v.Slope)), size(positive(v.SlopeLow)), size(positive(v.SlopeHigh)), percent(share(s.Frees, s.Allocs))),
		Evidence: map[string]float64{
			"live_bytes": float64(s.LiveBytes), "live_blocks": float64(s.LiveBlocks), "slope_bytes_per_hour": v.Slope,
			"slope_low_bytes_per_hour": v.SlopeLow, "slope_high_bytes_per_hour": v.SlopeHigh, "drift_bytes": v.Drift,
			"heap_growth_bytes": growth, "points": float64(v.Points),
		},
		Next: "look at who should free these blocks; `memtrace soak` over hours tells a leak from a cache that is still filling",
	}
}

// heapGrowth is by how much the live bytes of the whole heap have grown over the trace.
func heapGrowth(rec *recording.Recording) (bytes float64, known bool) {
	if rec.Heap == nil || rec.HeapBefore == nil {
		return 0, false
	}
	return float64(rec.Heap.LiveBytes()) - float64(rec.HeapBefore.LiveBytes()), true
}

// livePoints turns a site's live bytes into a series.
func livePoints(s *recording.Site) []trend.Point {
	points := make([]trend.Point, len(s.LiveSeries))
	for i, p := range s.LiveSeries {
		points[i] = trend.Point{At: time.Duration(p.TimeNS), Bytes: float64(p.LiveBytes)}
	}
	return points
}

// siteName is the function that allocates, and the one that called it.
func siteName(s *recording.Site) string {
	name := s.Entry
	for i, frame := range s.Stack {
		if i == 2 || frame.Function == "" {
			break
		}
		if i == 0 {
			name = frame.Function
		} else {
			name += ", called by " + frame.Function
		}
	}
	return name
}

func positive(value float64) uint64 { return uint64(max(0, value)) }
