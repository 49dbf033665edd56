package recording

// Rounds is the target's work cut into rounds (a turn of its poll loop, a request).
type Rounds struct {
	Spec       string       `json:"spec"`
	Count      uint64       `json:"count"`
	PerThread  bool         `json:"per_thread"`
	Allocs     Distribution `json:"allocs"` // new blocks a round
	Bytes      Distribution `json:"bytes"`  // bytes of new blocks a round
	DurationNS Distribution `json:"duration_ns"`
	CPUNS      Distribution `json:"cpu_ns"`
	Series     []Round      `json:"series"` // bounded, evenly thinned
	// Idle is how long the thread slept before each round (auto), as a distribution.
	IdleNS Distribution `json:"idle_ns"`
	// BytesHistogram counts the rounds by the bytes of their new blocks, ascending.
	BytesHistogram []RoundBucket `json:"bytes_histogram"`
	// Threads is the same per thread, busiest first; one entry for process-wide rounds.
	Threads []RoundThread `json:"threads"`
	// Missed counts rounds that were not recorded because the probes were out or the log was full.
	Missed uint64 `json:"missed"`
	// Incomplete counts rounds during which the allocation probes were out for a time; they are left out of the distributions of allocations and bytes and of the series.
	Incomplete uint64 `json:"incomplete"`
}

// RoundBucket counts the rounds that allocated at most UptoBytes and more than the bucket
// before; bounds are powers of two.
type RoundBucket struct {
	UptoBytes uint64 `json:"upto_bytes"`
	Rounds    uint64 `json:"rounds"`
}

// RoundThread is one thread's rounds.
type RoundThread struct {
	TID        int          `json:"tid"`
	Name       string       `json:"name"`
	Count      uint64       `json:"count"`
	Incomplete uint64       `json:"incomplete"` // of them: see Rounds
	Wait       string       `json:"wait"`       // the system call that separates its rounds: "epoll_wait"
	Allocs     Distribution `json:"allocs"`
	Bytes      Distribution `json:"bytes"`
	DurationNS Distribution `json:"duration_ns"`
	CPUNS      Distribution `json:"cpu_ns"`
	PeriodNS   Distribution `json:"period_ns"` // from one round's start to the next
	// Writes counts the rounds in which the thread wrote or sent anything (a system call of the write or send kind).
	Writes uint64 `json:"writes"`
	// Wakes counts the rounds in which the thread woke another one by a futex.
	Wakes uint64 `json:"wakes"`
	// Timeouts counts the rounds that began because the wait timed out with nothing to do.
	Timeouts uint64 `json:"timeouts"`
}

// Distribution sums a quantity over rounds or waits. The mean is exact; percentiles are
// exact up to the number of values kept, else from a histogram (see docs).
type Distribution struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Round is one round of the series.
type Round struct {
	Index      uint64 `json:"index"`
	TID        int    `json:"tid"` // 0 for process-wide rounds
	StartNS    int64  `json:"start_ns"`
	DurationNS int64  `json:"duration_ns"`
	CPUNS      int64  `json:"cpu_ns"`
	Allocs     uint64 `json:"allocs"`
	AllocBytes uint64 `json:"alloc_bytes"`
	Frees      uint64 `json:"frees"`
	FreeBytes  uint64 `json:"free_bytes"`
}
