package recording

// Mmap is memory taken from the kernel outside malloc; the allocator's own mappings are
// not counted again.
type Mmap struct {
	Totals MmapTotals `json:"totals"`
	Sites  []MmapSite `json:"sites"` // by mapped_bytes, largest first
}

// MmapTotals sums the calls outside malloc. BrkBytes is by how much they moved the program break
// up, less by how much down. What MAP_FIXED or mremap replaces counts as unmapped.
type MmapTotals struct {
	MappedBytes    uint64 `json:"mapped_bytes"`
	UnmappedBytes  uint64 `json:"unmapped_bytes"`
	BrkBytes       int64  `json:"brk_bytes"`
	DiscardedBytes uint64 `json:"discarded_bytes"` // madvise DONTNEED or FREE
	Maps           uint64 `json:"maps"`
	Unmaps         uint64 `json:"unmaps"`
	// AllocatorBytes were mapped by malloc itself and are in no site.
	AllocatorBytes uint64 `json:"allocator_bytes"`
}

// MmapSite is a place that maps memory. LiveBytes were mapped while traced and are still mapped.
type MmapSite struct {
	Stack         Stack  `json:"stack"`
	Maps          uint64 `json:"maps"`
	MappedBytes   uint64 `json:"mapped_bytes"`
	LiveBytes     uint64 `json:"live_bytes"`
	ResidentBytes uint64 `json:"resident_bytes"` // of the live bytes, at the end of the trace
}
