// Package tracer runs a tracing session: it opens the target, loads and attaches the
// families of probes, watches until the trace ends, and hands over a recording.
package tracer

// Session is one trace of one process, from Open to Close.
type Session struct {
	options  Options
	tracee   *tracee
	kernel   *kernel
	families []family
}
