package tracer

import (
	"time"

	"golang.org/x/sys/unix"

	"memtrace/symbolize"
	"memtrace/tracer/target"
)

// tracee is what a family needs to know about the process that is traced.
type tracee struct {
	pid     int
	options Options
	target  *target.Target
	symbols *symbolize.Symbolizer
	buildID string   // of the executable
	memory  *mmapLog // the memory calls, nil where nobody follows them
	cost    *cost    // what the trace costs, and the target's own processor time
	// startedNS is when the trace began, on the clock that bpf_ktime_get_ns reads: the zero
	// of all times in the recording. It is set before any probe is attached.
	startedNS int64
	started   time.Time
}

// since converts a time of the kernel half into nanoseconds since the start of the trace.
func (t *tracee) since(ktimeNS uint64) int64 { return int64(ktimeNS) - t.startedNS }

// monotonicNS reads the clock that bpf_ktime_get_ns reads.
func monotonicNS() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0
	}
	return now.Nano()
}
