package recording

// Locks is what threads slept on in futex calls. A lock that is taken without waiting
// never enters the kernel and is not here.
type Locks struct {
	Locks  []Lock     `json:"locks"`  // contended ones first by total wait, parked ones last
	Chains []Chain    `json:"chains"` // the longest relays
	Calls  FutexCalls `json:"calls"`
	// Dropped counts the locks of least waiting that are left out.
	Dropped int `json:"dropped"`
	// Estimated: the probes were out now and then; counts and sums are scaled to the whole trace.
	Estimated bool `json:"estimated"`
	// Withheld tells why no convoy verdict is given, empty where one could be.
	Withheld string `json:"withheld,omitempty"`
}

// FutexCalls counts the process's futex calls by outcome.
type FutexCalls struct {
	Waits      uint64 `json:"waits"`  // wait calls
	Slept      uint64 `json:"slept"`  // waits that slept
	EAgain     uint64 `json:"eagain"` // waits that returned at once: the word had changed
	Timeouts   uint64 `json:"timeouts"`
	Wakes      uint64 `json:"wakes"`       // wake calls
	EmptyWakes uint64 `json:"empty_wakes"` // wakes that found nobody
	Requeues   uint64 `json:"requeues"`    // calls that moved sleepers to another word
}

// Lock is one futex word, or one object whose words belong together (a condition variable).
type Lock struct {
	Address               Address      `json:"address"`
	Kind                  string       `json:"kind"` // arena, allocator, mutex, condvar, semaphore, rwlock, join, parking, unknown
	Name                  string       `json:"name"`
	AcquisitionsContended uint64       `json:"acquisitions_contended"`
	Waits                 uint64       `json:"waits"`
	WaitNS                WaitTimes    `json:"wait_ns"`
	Handoffs              uint64       `json:"handoffs"`
	HandoffsEffective     uint64       `json:"handoffs_effective"`
	HandoffsFutile        uint64       `json:"handoffs_futile"`
	HandoffNS             HandoffTimes `json:"handoff_ns"`
	Hold                  Hold         `json:"hold_ns"`
	QueueMean             float64      `json:"queue_mean"` // threads asleep on it, on average while any were
	QueueMax              uint64       `json:"queue_max"`
	Threads               []LockThread `json:"threads"`
	ConvoyFraction        float64      `json:"convoy_fraction"` // share of the trace that lay in convoy-like busy periods
	BusyFraction          float64      `json:"busy_fraction"`   // share of the trace during which at least one thread slept on it
	BusyPeriods           uint64       `json:"busy_periods"`
	Longest               *BusyPeriod  `json:"longest_busy_period,omitempty"`
	Rotation              float64      `json:"rotation"` // handoffs for each distinct wakee in the longest busy period
	Wakees                uint64       `json:"wakees"`   // distinct threads that it was handed to
	EAgain                uint64       `json:"eagain"`
	Timeouts              uint64       `json:"timeouts"`
	Interrupted           uint64       `json:"interrupted"` // waits that a signal or the thread's end cut short
	Waiting               uint64       `json:"waiting"`     // of the waits, those in progress at the end
	Wakes                 uint64       `json:"wakes"`
	Woken                 uint64       `json:"woken"` // threads
	EmptyWakes            uint64       `json:"empty_wakes"`
	Requeued              uint64       `json:"requeued"` // sleepers moved to another word
	Owner                 *LockOwner   `json:"owner,omitempty"`
	Waiters               []LockWaiter `json:"waiters"`
	Wakers                []LockWaker  `json:"wakers"`
}

// BusyPeriod is a stretch of time in which at least one thread slept on the lock.
type BusyPeriod struct {
	StartNS    int64   `json:"start_ns"`
	DurationNS int64   `json:"duration_ns"`
	Handoffs   uint64  `json:"handoffs"`
	Wakees     uint64  `json:"wakees"` // distinct threads, at most 64 are told apart
	QueueMean  float64 `json:"queue_mean"`
}

// Parked tells whether threads that wait here wait for work, not for each other.
func (l Lock) Parked() bool {
	switch l.Kind {
	case "condvar", "join", "parking":
		return true
	}
	return false
}

// WaitTimes sums how long threads slept; percentiles come from power-of-two histograms
// refined within the bucket and carry up to a quarter of error.
type WaitTimes struct {
	Total int64 `json:"total"`
	P50   int64 `json:"p50"`
	P99   int64 `json:"p99"`
	Max   int64 `json:"max"`
}

// HandoffTimes is how long it took from the waking to the woken thread on a CPU.
type HandoffTimes struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
}

// Hold is the time from a woken thread's return to its own wake of the lock, split by what
// the thread did meanwhile.
type Hold struct {
	P50       int64  `json:"p50"`
	P99       int64  `json:"p99"`
	Total     int64  `json:"total"`
	OnCPU     int64  `json:"on_cpu"`
	Asleep    int64  `json:"asleep"`
	Preempted int64  `json:"preempted"`
	Count     uint64 `json:"count"`
}

// LockThread is a thread's part in a lock.
type LockThread struct {
	TID    int    `json:"tid"`
	Name   string `json:"name"`
	Waits  uint64 `json:"waits"`
	WaitNS int64  `json:"wait_ns"`
	Wakes  uint64 `json:"wakes"`
}

// LockOwner is the thread that the lock's word, or the mutex around it, names as its holder.
type LockOwner struct {
	TID   int    `json:"tid"`
	Name  string `json:"name"`
	Stack Stack  `json:"stack"`
}

// LockWaiter is a place where threads slept on the lock.
type LockWaiter struct {
	Stack  Stack  `json:"stack"`
	Waits  uint64 `json:"waits"`
	WaitNS int64  `json:"wait_ns"`
}

// LockWaker is a place from which threads woke others on the lock.
type LockWaker struct {
	Stack Stack  `json:"stack"`
	Wakes uint64 `json:"wakes"`
}

// Chain is a relay: each thread was woken by the one before and woke the next.
type Chain struct {
	Lock       Address  `json:"lock"`
	Name       string   `json:"name"`
	Length     uint64   `json:"length"`
	TIDs       []int    `json:"tids"`
	Threads    []string `json:"threads"`
	StartNS    int64    `json:"start_ns"`
	DurationNS int64    `json:"duration_ns"`
	// TimesNS tells when each of TIDs was woken, since the start of the trace; the first of a
	// whole relay was not woken by it and stands at its start.
	TimesNS []int64 `json:"times_ns"`
}

// Scheduling is what the kernel's scheduler did with the target's threads.
type Scheduling struct {
	Threads []ScheduledThread `json:"threads"` // by cpu_ns, largest first
}

// ScheduledThread is one thread: switches are counts, times are exact to the clock's grain.
type ScheduledThread struct {
	TID            int    `json:"tid"`
	Name           string `json:"name"`
	CPUNS          int64  `json:"cpu_ns"`
	Voluntary      uint64 `json:"voluntary"`
	Nonvoluntary   uint64 `json:"nonvoluntary"`
	RunnableWaitNS int64  `json:"runnable_wait_ns"`
	FutexWaitNS    int64  `json:"futex_wait_ns"`
	IdleWaitNS     int64  `json:"idle_wait_ns"`
	OtherWaitNS    int64  `json:"other_wait_ns"` // asleep for another reason: disk, page faults, pipes
}
