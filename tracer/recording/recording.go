// Package recording is the pure model of what a trace found: no input or output, no BPF
// type. The tracer fills it, findings judge it, outputs render it.
//
// Its JSON form is the project's contract with scripts and dashboards ("memtrace/1"): byte
// counts end in _bytes, times in _ns, addresses are hexadecimal strings, times of day are
// RFC 3339. A section whose probe was off is nil and absent; an empty list is [].
package recording

import "time"

// Schema names the form of a recording. A reader accepts every "memtrace/1" recording,
// whatever fields a newer writer added.
const Schema = "memtrace/1"

// Recording is all that one trace of one process found.
type Recording struct {
	Schema     string      `json:"schema"`
	Target     Target      `json:"target"`
	Session    Session     `json:"session"`
	Overhead   Overhead    `json:"overhead"`
	Losses     Losses      `json:"losses"`
	Allocation *Allocation `json:"allocation,omitempty"`
	Rounds     *Rounds     `json:"rounds,omitempty"`
	Arenas     *Arenas     `json:"arenas,omitempty"`
	HeapBefore *Heap       `json:"heap_before,omitempty"`
	Heap       *Heap       `json:"heap,omitempty"`
	Locks      *Locks      `json:"locks,omitempty"`
	Scheduling *Scheduling `json:"scheduling,omitempty"`
	Mmap       *Mmap       `json:"mmap,omitempty"`
	Findings   []Finding   `json:"findings"`
	Notes      []string    `json:"notes"` // what the reader must know to read the numbers rightly, one sentence each
}

// Target is the process that was traced.
type Target struct {
	PID       int       `json:"pid"` // in memtrace's own PID namespace
	Command   string    `json:"command"`
	Exe       string    `json:"exe"`
	Threads   int       `json:"threads"` // when the trace began
	Allocator Allocator `json:"allocator"`
	Container string    `json:"container"` // the container's id, empty outside one
	Started   time.Time `json:"started"`
	BuildID   string    `json:"build_id,omitempty"` // of the executable; tells whether two recordings are of one program
	Exited    bool      `json:"exited"`             // the process ended while it was traced
	Processes []Process `json:"processes,omitempty"`
}

// Process is one process of a traced family (--follow-forks); the first is the target.
type Process struct {
	PID    int    `json:"pid"`
	Parent int    `json:"parent"`
	Name   string `json:"name"`
	Allocs uint64 `json:"allocs"`
	Bytes  uint64 `json:"alloc_bytes"`
}

// Allocator is the implementation of malloc that the process really uses.
type Allocator struct {
	Name    string `json:"name"` // "glibc", "musl", "jemalloc", "tcmalloc", "mimalloc"
	Version string `json:"version"`
	Path    string `json:"path"` // as the target sees it
}

// Session is the trace itself.
type Session struct {
	Started         time.Time `json:"started"`
	DurationNS      int64     `json:"duration_ns"` // from the probes' attachment to the end of the trace
	Kernel          string    `json:"kernel"`
	Arch            string    `json:"arch"`
	MemtraceVersion string    `json:"memtrace_version"`
	Exact           bool      `json:"exact"`
	MaxOverhead     float64   `json:"max_overhead"` // a fraction; 0 = no bound
	Probes          []string  `json:"probes"`       // the families that were on
	SampleBytes     uint64    `json:"sample_bytes"` // mean bytes between two stacks; 0 with --exact
	Round           string    `json:"round"`        // the round specification
	Scope           string    `json:"scope,omitempty"`
}

// Duration returns the trace's length.
func (s Session) Duration() time.Duration { return time.Duration(s.DurationNS) }

// Overhead is what the trace cost the target: hits are counted, times are estimated from
// a calibration of one hit on this machine.
type Overhead struct {
	ProbeHits      uint64  `json:"probe_hits"`
	ProbeTimeNS    int64   `json:"probe_time_ns"`
	TargetSlowdown float64 `json:"target_slowdown"` // estimate: probe time over the target's own CPU time; 0.02 = 2 %
	WallSlowdown   float64 `json:"wall_slowdown"`   // estimate: probe time over wall time and threads that ran
	DutyCycle      float64 `json:"duty_cycle"`      // share of the time the allocation probes were in; 1 = always
	AttachNS       int64   `json:"attach_ns"`
	HitCostNS      float64 `json:"hit_cost_ns"` // one hit of the cheapest allocation probe, as calibrated
	OwnCPUNS       int64   `json:"own_cpu_ns"`  // memtrace's own processor time
	OwnRSSBytes    uint64  `json:"own_rss_bytes"`
	// Coverage is the share of the time during which each family's probes were in.
	Coverage map[string]float64 `json:"coverage,omitempty"`
}

// Losses counts what could not be recorded. A zero is a promise that nothing was lost.
type Losses struct {
	StacksLost             uint64  `json:"stacks_lost"`
	SitesLost              uint64  `json:"sites_lost"`
	ThreadsLost            uint64  `json:"threads_lost"`
	EventsLost             uint64  `json:"events_lost"`
	LocksLost              uint64  `json:"locks_lost"`
	BlocksLost             uint64  `json:"blocks_lost"`  // sampled blocks whose lifetime could not be followed
	MissedHits             uint64  `json:"missed_hits"`  // hits that the kernel did not run the program for
	FailedReads            uint64  `json:"failed_reads"` // reads of target memory that failed in a probe
	UnwindRowsLost         uint64  `json:"unwind_rows_lost"`
	StacksTruncated        uint64  `json:"stacks_truncated"`
	StacksGuessed          uint64  `json:"stacks_guessed"`
	StacksTaken            uint64  `json:"stacks_taken"`
	StacksCompleteFraction float64 `json:"stacks_complete_fraction"`
}

// Frame is one function of a stack. A frame without a name keeps its module and offset and
// says in Unresolved why: "stripped", "jit", "unmapped" or "stack lost".
type Frame struct {
	Function   string  `json:"function"`
	File       string  `json:"file"`
	Line       int     `json:"line"`
	Module     string  `json:"module"`
	Offset     uint64  `json:"offset"` // within the module's file, as its symbols count
	Inlined    bool    `json:"inlined"`
	Address    Address `json:"address"`
	Unresolved string  `json:"unresolved"`
	BuildID    string  `json:"build_id,omitempty"`
}

// Stack is leaf first.
type Stack []Frame

// Finding is a judgement with the numbers it rests on and what to do next.
type Finding struct {
	Kind     string             `json:"kind"`
	Severity Severity           `json:"severity"`
	Subject  string             `json:"subject"` // what it is about: a lock, a site, an arena, the process
	Summary  string             `json:"summary"` // one sentence, numbers in human units
	Evidence map[string]float64 `json:"evidence"`
	Next     string             `json:"next"`
}

// Severity orders findings: high, medium, info.
type Severity string

// The severities. A process with nothing wrong yields neither high nor medium.
const (
	High   Severity = "high"
	Medium Severity = "medium"
	Info   Severity = "info"
)

// Rank orders severities, the worst first.
func (s Severity) Rank() int {
	switch s {
	case High:
		return 0
	case Medium:
		return 1
	}
	return 2
}
