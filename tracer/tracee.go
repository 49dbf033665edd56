package tracer

import "time"

// tracee is what a family needs to know about the process that is traced.
type tracee struct {
	pid     int
	options Options
	started time.Time // when the trace began; the zero of all times in the recording
}
