package tracer

import (
	"slices"
	"time"
)

// DefaultSampleBytes is the mean number of allocated bytes between two stacks taken.
const DefaultSampleBytes = 64 << 10

// probeNames lists what --probes may choose, in the order of the documentation.
var probeNames = []string{"alloc", "arena", "lock", "sched", "mmap"}

// ProbeNames returns the names that Options.Probes may hold.
func ProbeNames() []string { return slices.Clone(probeNames) }

// Options says what to trace and how. The zero value of a field means its default unless
// the field says otherwise.
type Options struct {
	// PID is the target, in memtrace's own PID namespace.
	PID int
	// Duration ends the trace; 0 = until the context or the target ends.
	Duration time.Duration
	// Probes are the families to use, from ProbeNames; empty = all.
	Probes []string
	// Round is the round specification of the contract: "auto", "func:SYMBOL", … ; empty = "auto".
	Round string
	// Exact takes every call's stack and excludes failed calls; no duty cycle.
	Exact bool
	// SampleBytes is the mean number of allocated bytes between two stacks; 0 = DefaultSampleBytes.
	SampleBytes uint64
	// MaxOverhead bounds the target's slowdown, as a fraction; 0 = no bound.
	MaxOverhead float64
	// FollowForks traces the allocations of children too.
	FollowForks bool
	// children is what all followers of one trace share: how many children are traced.
	children *childBudget
	// Top is the number of sites whose details are kept; 0 = all that the maps hold.
	Top int
	// HeapEvery is how old the reading of the heap in a snapshot of a running trace may be;
	// 0 = it is read for each.
	HeapEvery time.Duration
	// Scope names what the target was chosen by, for the recording: "", "comm:NAME", "cgroup:PATH".
	Scope string
	// Version is memtrace's own version, for the recording.
	Version string
}

// probes tells whether the named family was asked for.
func (o Options) probes(name string) bool {
	return len(o.Probes) == 0 || slices.Contains(o.Probes, name)
}

// withDefaults fills the fields that were left zero.
func (o Options) withDefaults() Options {
	if len(o.Probes) == 0 {
		o.Probes = ProbeNames()
	}
	if o.Round == "" {
		o.Round = "auto"
	}
	if o.SampleBytes == 0 {
		o.SampleBytes = DefaultSampleBytes
	}
	if o.Exact {
		o.MaxOverhead = 0
	}
	return o
}
