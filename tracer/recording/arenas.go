package recording

// Arenas is what happened to glibc's arenas while they were watched.
type Arenas struct {
	Limit   int          `json:"limit"` // as glibc applies it: the tunable, or 8 × cores; 0 = not known
	Created []ArenaEvent `json:"created"`
	Reused  []ArenaEvent `json:"reused"`
	// HeapsGrown and HeapsShrunk count the times that a heap took memory or gave it back, the
	// program break of the main arena included; what malloc_trim gives back is in Trims.
	HeapsGrown  uint64          `json:"heaps_grown"`
	HeapsShrunk uint64          `json:"heaps_shrunk"`
	Trims       []Trim          `json:"trims"`
	Thresholds  []ThresholdRise `json:"threshold_rises"`
	// Method tells how the events were seen: "uprobes", "markers" or "mmap".
	Method string `json:"method"`
	// EventsDropped counts events beyond the bound of the lists.
	EventsDropped uint64 `json:"events_dropped"`
}

// ArenaEvent is an arena that was created, or handed to a thread that had none. Cause is
// "first-allocation" or "retry".
type ArenaEvent struct {
	TimeNS int64   `json:"time_ns"` // since the start of the trace
	Arena  Address `json:"arena"`
	TID    int     `json:"tid"`
	Thread string  `json:"thread"`
	Cause  string  `json:"cause"`
	Stack  Stack   `json:"stack"`
}

// Trim is one call of malloc_trim. Waiters are threads that slept on an arena's lock and were
// woken by it; 0 where the lock probes are off.
type Trim struct {
	TimeNS         int64  `json:"time_ns"`
	TID            int    `json:"tid"`
	Thread         string `json:"thread"`
	DurationNS     int64  `json:"duration_ns"`
	RSSBeforeBytes uint64 `json:"rss_before_bytes"`
	RSSAfterBytes  uint64 `json:"rss_after_bytes"`
	Returned       bool   `json:"returned"` // malloc_trim's own answer: memory went back
	Waiters        int    `json:"waiters"`
	WaitNS         int64  `json:"wait_ns"` // no more than their waiting, summed: the trim's duration for each
	Stack          Stack  `json:"stack"`
}

// ThresholdRise is a free of an mmapped block that raised the mmap threshold.
type ThresholdRise struct {
	TimeNS      int64  `json:"time_ns"`
	TID         int    `json:"tid"`
	Thread      string `json:"thread"`
	BeforeBytes uint64 `json:"before_bytes"`
	AfterBytes  uint64 `json:"after_bytes"`
	Stack       Stack  `json:"stack"`
}
