package tracer

import (
	"context"
	"fmt"
	"runtime"

	"memtrace/bpf"
	"memtrace/tracer/recording"
)

// Record returns what the trace found. After the end of the trace the probes are
// out, so that the figures agree; before, it is a snapshot and the trace goes on.
func (s *Session) Record(ctx context.Context) (*recording.Recording, error) {
	if s.stopErr != nil {
		return nil, s.stopErr
	}
	if err := s.names.refresh(); err != nil {
		return nil, err
	}
	// The duration is taken as the counters are read: rates between snapshots rest on both.
	rec := &recording.Recording{
		Schema: recording.Schema, Target: s.describeTarget(), Session: s.describe(),
		Findings: []recording.Finding{}, Notes: []string{},
	}
	for _, f := range s.families {
		if err := f.collect(ctx, rec, s.names); err != nil {
			return nil, fmt.Errorf("collect what the %s probes found: %w", f.name(), err)
		}
	}
	if err := s.describeLosses(rec); err != nil {
		return nil, err
	}
	return rec, s.describeOverhead(rec)
}

func (s *Session) describeTarget() recording.Target {
	t := s.tracee.target
	return recording.Target{
		PID: t.PID, Command: t.Command(), Exe: t.Exe, Threads: t.Threads, Container: t.Container, Started: t.Started,
		Allocator: recording.Allocator{Name: t.Allocator.Name, Version: t.Allocator.Version, Path: t.Allocator.Path},
		BuildID:   s.tracee.buildID,
		Exited:    s.exited,
	}
}

func (s *Session) describe() recording.Session {
	o := s.options
	d := recording.Session{
		Started: s.tracee.started, DurationNS: s.elapsedNS(), Arch: runtime.GOARCH,
		MemtraceVersion: o.Version, Exact: o.Exact, MaxOverhead: o.MaxOverhead, Probes: o.Probes, SampleBytes: o.SampleBytes,
		Round: o.Round, Scope: o.Scope,
	}
	if o.Exact {
		d.SampleBytes = 0
	}
	d.Kernel = kernelRelease()
	return d
}

// elapsedNS is how long the trace has run, or ran.
func (s *Session) elapsedNS() int64 {
	end := s.endedNS
	if end == 0 {
		end = monotonicNS()
	}
	return end - s.tracee.startedNS
}

func (s *Session) describeLosses(rec *recording.Recording) error {
	lost, err := s.kernel.losses()
	if err != nil {
		return err
	}
	l := &rec.Losses
	l.StacksLost += lost[bpf.SharedLossLOSS_STACKS]
	l.SitesLost += lost[bpf.SharedLossLOSS_SITES]
	l.ThreadsLost += lost[bpf.SharedLossLOSS_THREADS]
	l.EventsLost += lost[bpf.SharedLossLOSS_EVENTS]
	l.LocksLost += lost[bpf.SharedLossLOSS_LOCKS]
	l.BlocksLost += lost[bpf.SharedLossLOSS_BLOCKS]
	l.FailedReads += lost[bpf.SharedLossLOSS_READS]
	l.UnwindRowsLost += lost[bpf.SharedLossLOSS_UNWIND_ROWS] + s.kernel.unwind.lost()
	l.StacksTaken = lost[bpf.SharedLossSTACKS_TAKEN]
	l.StacksTruncated = lost[bpf.SharedLossSTACKS_TRUNCATED]
	l.StacksGuessed = lost[bpf.SharedLossSTACKS_GUESSED]
	l.StacksCompleteFraction = 1
	if l.StacksTaken > 0 {
		incomplete := min(l.StacksTaken, l.StacksTruncated+l.StacksGuessed)
		l.StacksCompleteFraction = 1 - float64(incomplete)/float64(l.StacksTaken)
	}
	return nil
}

func (s *Session) describeOverhead(rec *recording.Recording) error {
	estimate, err := s.estimate()
	if err != nil {
		return err
	}
	rec.Overhead = estimate
	return nil
}
