package tracer

import (
	"memtrace/bpf"
	"memtrace/tracer/probe"
)

// returnsSeen chooses how returns of the allocator's entries are seen: with sessions only
// those of sampled calls; without, all of them, and only where the trace must be exact.
// Where a return probe could get the process killed, none.
func returnsSeen(features probe.Features, t *tracee) bpf.AllocReturns {
	switch {
	case !probe.ReturnsSafe(kernelRelease(), t.target.SeccompMode):
		return bpf.AllocReturnsRETURNS_UNSEEN
	case features.Session:
		return bpf.AllocReturnsRETURNS_SESSION
	case t.options.Exact:
		return bpf.AllocReturnsRETURNS_ALL
	}
	return bpf.AllocReturnsRETURNS_UNSEEN
}

// returnsNote says what a trace lacks that cannot see returns; "" when it lacks nothing.
func (f *allocFamily) returnsNote() string {
	switch {
	case f.returns != bpf.AllocReturnsRETURNS_UNSEEN:
		return ""
	case !probe.ReturnsSafe(kernelRelease(), f.tracee.target.SeccompMode):
		return "the process runs under a seccomp filter that this kernel's return probes could get it killed by: none was used, so lifetimes are unknown and failed calls count"
	}
	return "this kernel has no uprobe sessions: lifetimes are unknown and failed calls count; --exact shows both"
}
