package finding

import (
	"fmt"

	"memtrace/tracer/recording"
)

// defaultMmapThreshold is glibc's DEFAULT_MMAP_THRESHOLD_MIN (malloc/malloc.c).
const defaultMmapThreshold = 128 * kib

// thresholdDrift says that freeing mmapped blocks raised the mmap threshold, so that such
// blocks now come from arenas and stay there. The drift alone is ordinary; it is worth more
// than a remark only where free memory is held.
func thresholdDrift(rec *recording.Recording) []recording.Finding {
	if rec.Heap == nil {
		return nil
	}
	limits := rec.Heap.Limits
	if !limits.MmapThresholdDynamic || limits.MmapThresholdBytes <= defaultMmapThreshold {
		return nil
	}
	severity := recording.Info
	r := retention(rec.Heap)
	if _, held := r.severity(); held && limits.MmapThresholdBytes >= mib {
		severity = recording.Medium
	}
	rises, who := 0, ""
	if rec.Arenas != nil && len(rec.Arenas.Thresholds) > 0 {
		rises = len(rec.Arenas.Thresholds)
		who = "; the last free that raised it was by " + callerName(rec.Arenas.Thresholds[rises-1].Stack)
	}
	return []recording.Finding{{
		Kind:     "threshold-drift",
		Severity: severity,
		Subject:  "mmap threshold",
		Summary: fmt.Sprintf("freeing large blocks raised the mmap threshold from %s to %s: blocks up to that size now come from arenas, and their memory stays there%s",
			size(defaultMmapThreshold), size(limits.MmapThresholdBytes), who),
		Evidence: map[string]float64{
			"mmap_threshold_bytes":    float64(limits.MmapThresholdBytes),
			"trim_threshold_bytes":    float64(limits.TrimThresholdBytes),
			"rises_while_traced":      float64(rises),
			"free_resident_bytes":     float64(r.free()),
			"default_threshold_bytes": defaultMmapThreshold,
		},
		Next: driftAdvice(severity),
	}}
}

// driftAdvice advises pinning the threshold only where memory is held.
func driftAdvice(severity recording.Severity) string {
	if severity == recording.Info {
		return "nothing to do while little free memory is held"
	}
	return "pin it: GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072 gives every block above 128 KiB a mapping of its own, returned when it is freed, at one mmap and munmap each"
}
