package finding

import (
	"fmt"
	"math"

	"memtrace/tracer/recording"
)

// What counts as no growth: a hundredth of the live bytes, at least a MiB, over a trace that
// is long enough to say so.
const (
	plateauShare = 0.01
	plateauBytes = 1 << 20
)

// plateau says that live memory does not grow. It is no more than a remark: the trace may
// have been too short for the leak.
func plateau(rec *recording.Recording) []recording.Finding {
	growth, known := heapGrowth(rec)
	if !known || rec.Session.Duration() < leakSpan || len(leak(rec)) > 0 {
		return nil
	}
	before, now := rec.HeapBefore.LiveBytes(), rec.Heap.LiveBytes()
	if math.Abs(growth) > math.Max(plateauBytes, plateauShare*float64(before)) {
		return nil
	}
	return []recording.Finding{{
		Kind:     "plateau",
		Severity: recording.Info,
		Subject:  "heap",
		Summary: fmt.Sprintf("live memory did not grow in %s: %s at the start, %s at the end",
			spell(float64(rec.Session.DurationNS)), size(before), size(now)),
		Evidence: map[string]float64{"live_before_bytes": float64(before), "live_bytes": float64(now), "growth_bytes": growth},
		Next:     "what is resident beyond that is free memory that the allocator holds, or lies outside the heap: see the ledger",
	}}
}
