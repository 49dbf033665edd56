package finding

import "memtrace/tracer/recording"

// retained sums what the arenas of a heap hold, main arena and thread arenas apart. Only
// resident memory counts: free address space that was never touched costs nothing.
type retained struct {
	freeMain, freeThreads uint64 // free and resident
	live                  uint64 // live in arenas or in mmapped chunks
	holders               int    // thread arenas that hold at least a MiB free and resident
	largest               recording.Arena
	resident              uint64 // of the arenas and mmapped chunks
}

// The least retention worth a word. Below it every allocator keeps that much for a reason:
// glibc's own trim threshold is 128 KiB for each top, and drifts to 64 MiB.
const (
	leastRetention  = 64 * mib
	severeRetention = 512 * mib
	mostlyFree      = 0.5
	vastlyFree      = 0.7
)

// retention splits the heap at the end of the trace.
func retention(heap *recording.Heap) retained {
	r := retained{live: heap.MallInfo.Hblkhd}
	for _, arena := range heap.Arenas {
		r.live += arena.LiveBytes
		if arena.Main {
			r.freeMain += arena.FreeResidentBytes
		} else {
			r.freeThreads += arena.FreeResidentBytes
			if arena.FreeResidentBytes >= mib {
				r.holders++
			}
		}
		if arena.FreeResidentBytes > r.largest.FreeResidentBytes {
			r.largest = arena
		}
	}
	l := heap.Ledger
	r.resident = l.ArenaLiveResidentBytes + l.ArenaFreeResidentBytes + l.MmappedChunkBytes
	return r
}

// free is all that is free and resident.
func (r retained) free() uint64 { return r.freeMain + r.freeThreads }

// heldFraction is the share of the resident heap that is free.
func (r retained) heldFraction() float64 { return share(r.free(), r.resident) }

// severity tells whether the retention is worth a finding, and how severe it is.
func (r retained) severity() (severity recording.Severity, found bool) {
	switch {
	case r.free() < leastRetention || r.heldFraction() < mostlyFree:
		return "", false
	case r.free() >= severeRetention && r.heldFraction() >= vastlyFree:
		return recording.High, true
	}
	return recording.Medium, true
}
