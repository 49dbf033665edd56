package soak

import (
	"fmt"
	"time"

	"memtrace/tracer/finding/trend"
	"memtrace/tracer/recording"
)

// Judge judges each start of the program in a soak.
func Judge(soak *recording.Soak) recording.SoakReport {
	report := recording.SoakReport{Starts: []recording.SoakStart{}, Notes: append([]string{}, soak.Notes...)}
	for _, samples := range starts(soak.Samples) {
		report.Starts = append(report.Starts, judgeStart(samples))
	}
	return report
}

// starts cuts the samples where a new process begins.
func starts(samples []recording.Sample) [][]recording.Sample {
	var parts [][]recording.Sample
	from := 0
	for i := 1; i <= len(samples); i++ {
		if i == len(samples) || samples[i].Start || samples[i].PID != samples[i-1].PID || samples[i].StartTicks != samples[i-1].StartTicks {
			parts = append(parts, samples[from:i])
			from = i
		}
	}
	return parts
}

// judgeStart judges one start.
func judgeStart(samples []recording.Sample) recording.SoakStart {
	first, last := samples[0], samples[len(samples)-1]
	s := recording.SoakStart{PID: first.PID, From: first.Time, Samples: len(samples), Span: elapsed(first, last), Events: events(samples)}
	s.Committed = trend.Judge(points(samples, func(s recording.Sample) (uint64, bool) { return s.CommittedBytes, true }))
	live := points(samples, func(s recording.Sample) (uint64, bool) { return s.LiveBytes, s.Heap })
	if len(live) > 0 {
		verdict := trend.Judge(live)
		s.Live = &verdict
	}
	for _, sample := range samples {
		s.MaxBytes = max(s.MaxBytes, sample.CommittedBytes)
	}
	s.LimitBytes = last.Cgroup.MaxBytes
	if s.Committed.Kind == trend.Leak && s.LimitBytes > last.Cgroup.CurrentBytes {
		hours := float64(s.LimitBytes-last.Cgroup.CurrentBytes) / s.Committed.Slope
		if hours < (100 * 365 * 24) {
			s.LimitIn = time.Duration(hours * float64(time.Hour))
		}
	}
	s.Summary, s.Next = sentence(s)
	return s
}

// points makes a series on the boot clock, which the wall clock's steps do not disturb.
func points(samples []recording.Sample, value func(recording.Sample) (uint64, bool)) []trend.Point {
	var series []trend.Point
	for _, sample := range samples {
		if bytes, known := value(sample); known {
			series = append(series, trend.Point{At: elapsed(samples[0], sample), Bytes: float64(bytes)})
		}
	}
	return series
}

// elapsed is the time between two samples of one start.
func elapsed(from, to recording.Sample) time.Duration {
	if from.BootNS > 0 && to.BootNS > 0 {
		return time.Duration(to.BootNS - from.BootNS)
	}
	return to.Time.Sub(from.Time)
}

// sentence says what the two verdicts mean together, and what to do.
func sentence(s recording.SoakStart) (summary, next string) {
	rate := fmt.Sprintf("%s an hour (95 %%: %s to %s)", signed(s.Committed.Slope), signed(s.Committed.SlopeLow), signed(s.Committed.SlopeHigh))
	switch s.Committed.Kind {
	case trend.Leak:
		summary = "leak: the floor of committed memory grows by " + rate
		if s.LimitIn > 0 {
			summary += fmt.Sprintf("; the limit of %s would be reached in %s", size(float64(s.LimitBytes)), roughly(s.LimitIn))
		}
		switch {
		case s.Live == nil:
			next = "trace it: `memtrace --pid` names the sites whose live bytes grow"
		case s.Live.Kind == trend.Leak:
			next = "the program's own live memory grows: `memtrace --pid` names the sites whose live bytes grow"
		default:
			next = "live memory does not grow, so the allocator holds what is freed: `memtrace heap --pid` says which arenas, and whether a trim or an arena cap helps"
		}
	case trend.Plateau:
		summary = fmt.Sprintf("plateau: committed memory stays at about %s, at most %s", size(floor(s.Committed)), size(float64(s.MaxBytes)))
		if s.Live != nil && s.Live.Kind == trend.Leak {
			summary += fmt.Sprintf("; but live memory inside it grows by %s an hour", signed(s.Live.Slope))
			next = "the free memory that the allocator holds still covers the growth: `memtrace --pid` names the sites whose live bytes grow"
		} else {
			next = "nothing grows; `memtrace heap --pid` tells whether the level is live or held free"
		}
	case trend.Steps:
		summary = fmt.Sprintf("steps: the level changed by %s at %s, and is no slope", signed(s.Committed.Step), s.From.Add(s.Committed.StepAt).Format("15:04"))
		next = "look at what happened then (below, and in the program's own log)"
	case trend.WarmUp:
		summary = fmt.Sprintf("still warming up: committed memory rises, each quarter by less than the one before (%s now)", size(s.Committed.Last))
		next = "go on sampling: at least as long again"
	default:
		summary = fmt.Sprintf("too short to say: %d samples in %s do not tell growth from noise", s.Samples, roughly(s.Span))
		next = "go on sampling, at least ten times the period of the program's own ups and downs"
	}
	return summary, next
}

// floor is the level of a plateau.
func floor(v trend.Verdict) float64 {
	if n := len(v.Floors); n > 0 {
		return v.Floors[n-1]
	}
	return v.Last
}
