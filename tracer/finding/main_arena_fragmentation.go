package finding

import (
	"fmt"

	"memtrace/tracer/recording"
)

// mainArenaFragmentation says that the retention is in the main arena, where an arena cap
// changes nothing.
func mainArenaFragmentation(rec *recording.Recording) []recording.Finding {
	if rec.Heap == nil {
		return nil
	}
	r := retention(rec.Heap)
	severity, found := r.severity()
	if !found || r.freeMain <= r.freeThreads {
		return nil
	}
	main := mainArena(rec.Heap)
	return []recording.Finding{{
		Kind:     "main-arena-fragmentation",
		Severity: severity,
		Subject:  "main arena",
		Summary: fmt.Sprintf("%s of the free resident memory lies in the main arena, in %d chunks of at most %s; an arena cap will not help",
			percent(share(r.freeMain, r.free())), main.FreeChunks, size(main.LargestFreeBytes)),
		Evidence: map[string]float64{
			"main_free_resident_bytes":   float64(r.freeMain),
			"thread_free_resident_bytes": float64(r.freeThreads),
			"free_chunks":                float64(main.FreeChunks),
			"largest_free_bytes":         float64(main.LargestFreeBytes),
			"top_resident_bytes":         float64(main.TopResidentBytes),
			"trimmable_bytes":            float64(main.TrimmableBytes),
		},
		Next: fragmentationAdvice(main),
	}}
}

// mainArena returns the heap's main arena, or a zero one.
func mainArena(heap *recording.Heap) recording.Arena {
	for _, arena := range heap.Arenas {
		if arena.Main {
			return arena
		}
	}
	return recording.Arena{}
}

// fragmentationAdvice looks at what keeps the memory: holes that a trim can empty, or not.
func fragmentationAdvice(main recording.Arena) string {
	if share(main.TrimmableBytes, main.FreeResidentBytes) >= mostlyFree {
		return fmt.Sprintf("call malloc_trim(0) after peaks: %s of it is whole pages that a trim returns", size(main.TrimmableBytes))
	}
	return "small live blocks pin the pages: find the sites whose blocks stay (live bytes in `memtrace --pid PID`) and allocate them earlier, or apart from the short-lived ones"
}
