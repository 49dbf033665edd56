package recording

// Allocation is what the target asked of its allocator. Totals, threads and sizes are
// exact while the probes are in; sites rest on samples unless the trace is exact.
type Allocation struct {
	Totals  AllocationTotals   `json:"totals"`
	Rate    AllocationRate     `json:"rate"`
	Threads []AllocationThread `json:"threads"` // by alloc_bytes, largest first
	Sizes   []SizeClass        `json:"sizes"`   // powers of two, ascending
	Sites   []Site             `json:"sites"`   // by alloc_bytes, largest first
	// Estimated is true when the probes were out for part of the time (duty cycle): totals,
	// threads and sizes are then scaled by the coverage.
	Estimated bool `json:"estimated"`
	// RelativeError is the half width of the 95 % confidence interval of the totals, as a
	// fraction; 0 when they are counts.
	RelativeError float64 `json:"relative_error"`
	// Lifetimes tells whether sampled blocks were followed to their release.
	Lifetimes bool `json:"lifetimes"`
	// FreeSizes tells whether free_bytes are known (the allocator's chunk headers tell them).
	FreeSizes bool `json:"free_sizes"`
	// SitesDropped counts sites with few bytes left out of Sites.
	SitesDropped int `json:"sites_dropped,omitempty"`
	// Series is the course of the trace: one point for every equal slice of time.
	Series []AllocationPoint `json:"series,omitempty"`
}

// AllocationTotals counts calls and bytes. Allocs made a new block, Reallocs resized one,
// Frees released one; AllocBytes and ReallocBytes are as requested, FreeBytes the usable
// size of the blocks released. Failed is counted with --exact only.
type AllocationTotals struct {
	Allocs       uint64 `json:"allocs"`
	AllocBytes   uint64 `json:"alloc_bytes"`
	Frees        uint64 `json:"frees"`
	FreeBytes    uint64 `json:"free_bytes"`
	Reallocs     uint64 `json:"reallocs"`
	ReallocBytes uint64 `json:"realloc_bytes"`
	Failed       uint64 `json:"failed"`
}

// AllocationRate is the totals over the time the probes were in.
type AllocationRate struct {
	AllocsPerSecond     float64 `json:"allocs_per_second"`
	AllocBytesPerSecond float64 `json:"alloc_bytes_per_second"`
}

// AllocationThread is one thread's share. RemoteFrees are blocks that another thread
// allocated: exact with --exact, else an estimate from sampled blocks.
type AllocationThread struct {
	TID          int    `json:"tid"`
	PID          int    `json:"pid,omitempty"` // set with --follow-forks
	Name         string `json:"name"`
	Allocs       uint64 `json:"allocs"`
	AllocBytes   uint64 `json:"alloc_bytes"`
	Frees        uint64 `json:"frees"`
	FreeBytes    uint64 `json:"free_bytes"`
	Reallocs     uint64 `json:"reallocs"`
	ReallocBytes uint64 `json:"realloc_bytes"`
	RemoteFrees  uint64 `json:"remote_frees"`
}

// SizeClass counts the new blocks whose requested size is at most UptoBytes and larger
// than the class before.
type SizeClass struct {
	UptoBytes  uint64 `json:"upto_bytes"`
	Allocs     uint64 `json:"allocs"`
	AllocBytes uint64 `json:"alloc_bytes"`
}

// Site is a place that allocates: an entry of the allocator and the stack that called it.
type Site struct {
	Entry              string       `json:"entry"`
	Stack              Stack        `json:"stack"`
	Allocs             uint64       `json:"allocs"`
	AllocBytes         uint64       `json:"alloc_bytes"`
	Sampled            uint64       `json:"sampled"` // how many calls the estimates rest on
	Frees              uint64       `json:"frees"`
	FreeBytes          uint64       `json:"free_bytes"`
	LiveBytes          uint64       `json:"live_bytes"` // allocated while traced and not yet released
	LiveBlocks         uint64       `json:"live_blocks"`
	LifetimeP50NS      int64        `json:"lifetime_p50_ns"`
	SameRoundFraction  float64      `json:"same_round_fraction"`
	RemoteFreeFraction float64      `json:"remote_free_fraction"`
	RoundsActive       uint64       `json:"rounds_active"`
	BytesPerRound      float64      `json:"bytes_per_round"`
	AllocsPerRound     float64      `json:"allocs_per_round"`
	RoundBytes         uint64       `json:"round_bytes"`     // of all rounds; the rest was allocated outside
	RoundVariation     float64      `json:"round_variation"` // coefficient of variation of its bytes over the rounds it was active in
	Threads            []SiteThread `json:"threads"`
	LiveSeries         []LivePoint  `json:"live_series,omitempty"` // live bytes over the trace, for leak judgements
	PID                int          `json:"pid,omitempty"`
}

// SiteThread is a thread's share of a site.
type SiteThread struct {
	TID        int    `json:"tid"`
	Name       string `json:"name"`
	Allocs     uint64 `json:"allocs"`
	AllocBytes uint64 `json:"alloc_bytes"`
	RoundBytes uint64 `json:"round_bytes"` // in rounds of the thread
}

// LivePoint is a site's live bytes at a time since the start of the trace.
type LivePoint struct {
	TimeNS    int64  `json:"time_ns"`
	LiveBytes uint64 `json:"live_bytes"`
}

// AllocationPoint is one slice of the trace, from the end of the slice before to TimeNS.
type AllocationPoint struct {
	TimeNS     int64   `json:"time_ns"`
	Allocs     uint64  `json:"allocs"`
	AllocBytes uint64  `json:"alloc_bytes"`
	Frees      uint64  `json:"frees"`
	FreeBytes  uint64  `json:"free_bytes"`
	Coverage   float64 `json:"coverage"` // share of the slice during which the probes were in
}
