package recording

import "time"

// Heap is glibc's state as read from outside the process.
type Heap struct {
	Allocator         Allocator   `json:"allocator"`
	Time              time.Time   `json:"time"`
	Consistent        bool        `json:"consistent"` // known not to have torn
	Frozen            bool        `json:"frozen"`     // the process was stopped for the walk
	FrozenNS          int64       `json:"frozen_ns,omitempty"`
	WalkNS            int64       `json:"walk_ns"`
	Attempts          int         `json:"attempts"`
	Layout            string      `json:"layout"` // the table used, and whether its version is known
	MallInfo          MallInfo    `json:"mallinfo"`
	Arenas            []Arena     `json:"arenas"`
	TCache            TCache      `json:"tcache"`
	Limits            Limits      `json:"limits"`
	Ledger            Ledger      `json:"ledger"`
	TrimForecastBytes uint64      `json:"trim_forecast_bytes"` // what malloc_trim(0) would give back now
	Notes             []string    `json:"notes"`
	Context           HeapContext `json:"context"`
}

// HeapContext is whose heap it is, for a heap that stands alone.
type HeapContext struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
	Threads int    `json:"threads"`
}

// MallInfo is glibc's struct mallinfo2 (malloc/malloc.h), field by field.
type MallInfo struct {
	Arena    uint64 `json:"arena"`
	Ordblks  uint64 `json:"ordblks"`
	Smblks   uint64 `json:"smblks"`
	Hblks    uint64 `json:"hblks"`
	Hblkhd   uint64 `json:"hblkhd"`
	Usmblks  uint64 `json:"usmblks"`
	Fsmblks  uint64 `json:"fsmblks"`
	Uordblks uint64 `json:"uordblks"`
	Fordblks uint64 `json:"fordblks"`
	Keepcost uint64 `json:"keepcost"`
}

// Arena is one malloc_state. Live bytes are those not free in a bin or the top; chunks in
// thread caches count as live, as in mallinfo2.
type Arena struct {
	Address           Address `json:"address"`
	Main              bool    `json:"main"`
	AttachedThreads   uint64  `json:"attached_threads"`
	SystemBytes       uint64  `json:"system_bytes"`
	LiveBytes         uint64  `json:"live_bytes"`
	FreeBytes         uint64  `json:"free_bytes"`
	FreeResidentBytes uint64  `json:"free_resident_bytes"`
	TopBytes          uint64  `json:"top_bytes"`
	TopResidentBytes  uint64  `json:"top_resident_bytes"`
	FreeChunks        uint64  `json:"free_chunks"`
	FastbinBytes      uint64  `json:"fastbin_bytes"`
	LargestFreeBytes  uint64  `json:"largest_free_bytes"`
	TrimmableBytes    uint64  `json:"trimmable_bytes"`
	Heaps             int     `json:"heaps"`
	Locked            bool    `json:"locked"`
	ResidentBytes     uint64  `json:"resident_bytes"`
	SwappedBytes      uint64  `json:"swapped_bytes"`
}

// TCache sums the thread caches that were found.
type TCache struct {
	Threads int    `json:"threads"`
	Chunks  uint64 `json:"chunks"`
	Bytes   uint64 `json:"bytes"`
}

// Limits is how glibc is set up. ArenaMax is the tunable (0 = not set); ArenaLimit what
// follows from it or from the cores.
type Limits struct {
	ArenaMax             uint64 `json:"arena_max"`
	ArenaLimit           uint64 `json:"arena_limit"`
	MmapThresholdBytes   uint64 `json:"mmap_threshold_bytes"`
	TrimThresholdBytes   uint64 `json:"trim_threshold_bytes"`
	MmapThresholdDynamic bool   `json:"mmap_threshold_dynamic"`
}

// Ledger splits the resident memory of the process; its parts, from ArenaLiveResident to
// File, add up to RSS. Committed is the private memory that counts against the host:
// resident anonymous memory and swap.
type Ledger struct {
	RSSBytes               uint64 `json:"rss_bytes"`
	PSSBytes               uint64 `json:"pss_bytes"`
	SwapBytes              uint64 `json:"swap_bytes"`
	CommittedBytes         uint64 `json:"committed_bytes"`
	ArenaLiveResidentBytes uint64 `json:"arena_live_resident_bytes"`
	ArenaFreeResidentBytes uint64 `json:"arena_free_resident_bytes"`
	MmappedChunkBytes      uint64 `json:"mmapped_chunk_bytes"`
	OtherAnonBytes         uint64 `json:"other_anon_bytes"`
	StackBytes             uint64 `json:"stack_bytes"`
	FileBytes              uint64 `json:"file_bytes"`
}

// LiveBytes is what the program holds: chunks in use in the arenas, and mmapped chunks.
// Chunks in thread caches count, as in mallinfo2.
func (h *Heap) LiveBytes() uint64 { return h.MallInfo.Uordblks + h.MallInfo.Hblkhd }
