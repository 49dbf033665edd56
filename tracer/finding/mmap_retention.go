package finding

import (
	"fmt"
	"strings"

	"memtrace/tracer/recording"
)

// mmapRetention says that the memory is outside malloc: no setting of the allocator and no
// trim will reach it. It is worth more than a remark where mappings made during the trace
// pile up.
func mmapRetention(rec *recording.Recording) []recording.Finding {
	if rec.Heap == nil || rec.Mmap == nil {
		return nil
	}
	l := rec.Heap.Ledger
	malloc := l.ArenaLiveResidentBytes + l.ArenaFreeResidentBytes + l.MmappedChunkBytes
	if l.OtherAnonBytes < leastRetention || l.OtherAnonBytes < malloc {
		return nil
	}
	var live, resident uint64
	for _, site := range rec.Mmap.Sites {
		live += site.LiveBytes
		resident += site.ResidentBytes
	}
	severity := recording.Info
	const keeps = 0.7 // of what was mapped is still there and in use
	if resident >= leastRetention && share(resident, rec.Mmap.Totals.MappedBytes) >= keeps {
		severity = recording.Medium
	}
	finding := recording.Finding{
		Kind:     "mmap-retention",
		Severity: severity,
		Subject:  "mappings outside malloc",
		Summary: fmt.Sprintf("%s of the %s that are resident were mapped outside malloc, which holds %s",
			size(l.OtherAnonBytes), size(l.RSSBytes), size(malloc)),
		Evidence: map[string]float64{
			"other_anon_bytes":       float64(l.OtherAnonBytes),
			"malloc_resident_bytes":  float64(malloc),
			"rss_bytes":              float64(l.RSSBytes),
			"mapped_bytes":           float64(rec.Mmap.Totals.MappedBytes),
			"mapped_live_bytes":      float64(live),
			"mapped_resident_bytes":  float64(resident),
			"unmapped_bytes":         float64(rec.Mmap.Totals.UnmappedBytes),
			"malloc_trim_can_return": float64(rec.Heap.TrimForecastBytes),
		},
		Next: "look at the runtime that maps it (its own heap limits and statistics): malloc_trim and arena caps do not reach this memory",
	}
	if site, found := largestLive(rec.Mmap.Sites); found {
		finding.Subject = mapperName(site.Stack)
		finding.Summary += fmt.Sprintf("; while traced most of it by %s, %s", finding.Subject, size(site.LiveBytes))
	}
	return []recording.Finding{finding}
}

// largestLive is the site with the most memory that is still mapped.
func largestLive(sites []recording.MmapSite) (largest recording.MmapSite, found bool) {
	for _, site := range sites {
		if site.LiveBytes > largest.LiveBytes {
			largest, found = site, true
		}
	}
	return largest, found
}

// mapperName names the function that asked for a mapping: the first outside the C library.
func mapperName(stack recording.Stack) string {
	for _, frame := range stack {
		if frame.Function != "" && !strings.Contains(frame.Module, "/libc.so") && !strings.Contains(frame.Module, "/libc-2.") {
			return frame.Function
		}
	}
	return callerName(stack)
}
