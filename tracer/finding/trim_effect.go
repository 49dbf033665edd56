package finding

import (
	"fmt"

	"memtrace/tracer/recording"
)

// leastTrim is what a trim must return to be worth its while.
const leastTrim = 16 * mib

// trimEffect says what malloc_trim gave back while it was watched, and what it would give
// back now (trim-effective, trim-ineffective).
func trimEffect(rec *recording.Recording) []recording.Finding {
	var found []recording.Finding
	if rec.Arenas != nil && len(rec.Arenas.Trims) > 0 {
		found = append(found, trimSeen(rec.Arenas.Trims))
	}
	if rec.Heap != nil {
		found = append(found, trimForecast(rec.Heap)...)
	}
	return found
}

// trimSeen sums the calls of malloc_trim that were traced.
func trimSeen(trims []recording.Trim) recording.Finding {
	var returned uint64
	var took int64
	for _, trim := range trims {
		if trim.RSSBeforeBytes > trim.RSSAfterBytes {
			returned += trim.RSSBeforeBytes - trim.RSSAfterBytes
		}
		took += trim.DurationNS
	}
	each := returned / uint64(len(trims))
	finding := recording.Finding{
		Kind:     "trim-effective",
		Severity: recording.Info,
		Subject:  "malloc_trim",
		Summary: fmt.Sprintf("%s of malloc_trim returned %s, %s and %.1f ms each",
			count(len(trims), "call"), size(returned), size(each), float64(took)/float64(len(trims))/1e6),
		Evidence: map[string]float64{
			"trims":          float64(len(trims)),
			"returned_bytes": float64(returned),
			"duration_ns":    float64(took),
		},
		Next: "keep it; if the memory comes back at once, the churn is the thing to mend",
	}
	if each < mib {
		finding.Kind = "trim-ineffective"
		finding.Next = "malloc_trim costs time here and gives next to nothing back: call it more rarely, or not at all"
	}
	return finding
}

// trimForecast judges a trim that nobody has made yet, where there is free memory to speak of.
func trimForecast(heap *recording.Heap) []recording.Finding {
	r := retention(heap)
	if r.free() < leastRetention {
		return nil
	}
	finding := recording.Finding{
		Kind:     "trim-effective",
		Severity: recording.Info,
		Subject:  "malloc_trim",
		Summary: fmt.Sprintf("malloc_trim(0) would return %s of the %s that are free and resident",
			size(heap.TrimForecastBytes), size(r.free())),
		Evidence: map[string]float64{
			"trim_forecast_bytes": float64(heap.TrimForecastBytes),
			"free_resident_bytes": float64(r.free()),
		},
		Next: "have the process call malloc_trim(0) when it is idle, at most every few minutes: it holds each arena's lock while it works",
	}
	if heap.TrimForecastBytes < leastTrim || share(heap.TrimForecastBytes, r.free()) < 0.25 {
		finding.Kind = "trim-ineffective"
		finding.Next = trimlessAdvice(heap, r)
	}
	return []recording.Finding{finding}
}

// trimlessAdvice says why a trim cannot reach the memory.
func trimlessAdvice(heap *recording.Heap, r retained) string {
	var tops uint64
	for _, arena := range heap.Arenas {
		if !arena.Main {
			tops += arena.TopResidentBytes
		}
	}
	if share(tops, r.free()) >= mostlyFree {
		return fmt.Sprintf("%s are the tops of thread arenas, which malloc_trim does not touch", size(tops))
	}
	return "the free chunks are smaller than pages: no trim can return them"
}
