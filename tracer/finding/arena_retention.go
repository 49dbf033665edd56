package finding

import (
	"fmt"

	"memtrace/tracer/recording"
)

// arenaRetention says that most of the resident heap is free memory which glibc holds.
func arenaRetention(rec *recording.Recording) []recording.Finding {
	if rec.Heap == nil {
		return nil
	}
	r := retention(rec.Heap)
	severity, found := r.severity()
	if !found {
		return nil
	}
	return []recording.Finding{{
		Kind:     "arena-retention",
		Severity: severity,
		Subject:  "heap",
		Summary: fmt.Sprintf("%s of the resident heap is free memory that glibc holds: %s free and resident, %s live",
			percent(r.heldFraction()), size(r.free()), size(r.live)),
		Evidence: map[string]float64{
			"free_resident_bytes":        float64(r.free()),
			"live_bytes":                 float64(r.live),
			"free_fraction":              r.heldFraction(),
			"main_free_resident_bytes":   float64(r.freeMain),
			"thread_free_resident_bytes": float64(r.freeThreads),
			"trim_forecast_bytes":        float64(rec.Heap.TrimForecastBytes),
		},
		Next: retentionAdvice(rec.Heap, r),
	}}
}

// retentionAdvice names the lever that the numbers support, and no other.
func retentionAdvice(heap *recording.Heap, r retained) string {
	switch {
	case share(heap.TrimForecastBytes, r.free()) >= mostlyFree:
		return fmt.Sprintf("this is no leak: malloc_trim(0) would return %s now", size(heap.TrimForecastBytes))
	case r.freeThreads > r.freeMain && r.holders >= sprawlArenas:
		return "this is no leak: the memory lies in thread arenas, see arena-sprawl"
	}
	return "this is no leak, but live blocks cut the free memory up: look for small long-lived blocks allocated between large short-lived ones"
}
