package finding

import (
	"fmt"

	"memtrace/tracer/recording"
)

// What rounds that do nothing may cost: a share of one processor.
const (
	busyIdleCPU  = 0.02
	severeIdling = 0.10
)

// busyIdle says that a thread burns processor time in rounds that do nothing: nearly each
// began because a wait for events timed out, and ended without a write, a message or a
// wake-up for anyone.
func busyIdle(rec *recording.Recording) []recording.Finding {
	found := []recording.Finding{}
	for _, g := range roundsJudged(rec) {
		burnt := g.CPUNS.Mean / g.PeriodNS.Mean
		if !idles(&g) || burnt < busyIdleCPU {
			continue
		}
		severity := recording.Info
		if burnt >= severeIdling {
			severity = recording.Medium
		}
		found = append(found, recording.Finding{
			Kind:     "busy-idle",
			Severity: severity,
			Subject:  groupName(&g),
			Summary: fmt.Sprintf("%s of %s of %s began because %s timed out and put nothing out, yet each takes %s of CPU time: %s of a processor",
				percent(share(g.Timeouts, g.Count)), count(int(g.Count), "round"), groupName(&g), g.Wait, spell(g.CPUNS.Mean), percent(burnt)),
			Evidence: map[string]float64{
				"rounds": float64(g.Count), "timeouts": float64(g.Timeouts), "writes": float64(g.Writes), "wakes": float64(g.Wakes),
				"cpu_ns_per_round": g.CPUNS.Mean, "period_ns": g.PeriodNS.Mean, "cpu_fraction": burnt,
			},
			Next: "look for the work in this thread's sites: ask first whether there is anything to do, or wait longer",
		})
	}
	return found
}

// spell writes nanoseconds as a person reads them in a sentence.
func spell(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return figure(ns/1e3) + " µs"
	case ns < 1e9:
		return figure(ns/1e6) + " ms"
	}
	return figure(ns/1e9) + " s"
}
