package finding

import (
	"fmt"

	"memtrace/tracer/recording"
)

// Trims that threads waited for: shorter ones are told as a remark only.
const (
	longTrimNS   = 10e6
	severeTrimNS = 100e6
)

// trimStall says that malloc_trim held arena locks while threads waited for them.
func trimStall(rec *recording.Recording) []recording.Finding {
	if rec.Arenas == nil {
		return nil
	}
	var stalls, waiters int
	var longest recording.Trim
	for _, trim := range rec.Arenas.Trims {
		if trim.Waiters == 0 {
			continue
		}
		stalls++
		waiters += trim.Waiters
		if trim.DurationNS > longest.DurationNS {
			longest = trim
		}
	}
	if stalls == 0 {
		return nil
	}
	severity := recording.Info
	switch {
	case longest.DurationNS >= severeTrimNS:
		severity = recording.High
	case longest.DurationNS >= longTrimNS:
		severity = recording.Medium
	}
	return []recording.Finding{{
		Kind:     "trim-stall",
		Severity: severity,
		Subject:  "malloc_trim",
		Summary: fmt.Sprintf("%s of malloc_trim held arena locks that threads waited for, %s in all; the longest call, by %s, took %.1f ms",
			count(stalls, "call"), count(waiters, "wait"), callerName(longest.Stack), float64(longest.DurationNS)/1e6),
		Evidence: map[string]float64{
			"trims":               float64(len(rec.Arenas.Trims)),
			"stalling_trims":      float64(stalls),
			"waits":               float64(waiters),
			"longest_duration_ns": float64(longest.DurationNS),
		},
		Next: "call malloc_trim when the process is idle, or more rarely: it holds each arena's lock while it walks that arena",
	}}
}

// callerName names the function that made a call, as far as it is known.
func callerName(stack recording.Stack) string {
	for _, frame := range stack {
		if frame.Function != "" {
			return frame.Function
		}
	}
	return "an unnamed function"
}
