package finding

import (
	"fmt"
	"time"

	"memtrace/tracer/recording"
)

// A relay is long when it has gone round so often that chance does not explain it.
const (
	relayPeriod = 0.2 // least share of the trace
	// A relay cannot be followed over the time in which the probes were out: where they were,
	// it need last only so long.
	relayPiece = 50 * time.Millisecond
	relayRate  = 100 // least handoffs a second
	// A thread that brings work to others in turn stands at every second place of the relay;
	// in a queue all have an equal part. Twice that is allowed.
	relayUnevenness = 2
)

// relayConvoy says that threads hand on in lockstep though no single word shows it: fair
// locks give each waiter a word of its own.
func relayConvoy(rec *recording.Recording) []recording.Finding {
	if rec.Session.DurationNS <= 0 {
		return nil
	}
	for _, chain := range rec.Locks.Chains {
		members, most := relayMembers(chain)
		rate := float64(chain.Length) / (float64(max(chain.DurationNS, 1)) / float64(time.Second))
		period := float64(chain.DurationNS) / float64(rec.Session.DurationNS)
		if members < convoyMembers || chain.Length < uint64(convoyRotation*members) || chain.Length < convoyHandoffs ||
			!lasts(chain, rec) || rate < relayRate || most*members > relayUnevenness*len(chain.TIDs) {
			continue
		}
		severity := recording.Medium
		if period >= severeFraction {
			severity = recording.High
		}
		return []recording.Finding{{
			Kind:     "lock-convoy",
			Severity: severity,
			Subject:  relaySubject(chain),
			Summary: fmt.Sprintf("%s wake each other in turn, %s handoffs without a break during %s (%.0f a second)",
				count(members, "thread"), fmt.Sprint(chain.Length), span(chain.DurationNS), rate),
			Evidence: map[string]float64{
				"threads": float64(members), "handoffs": float64(chain.Length), "handoffs_per_second": rate,
				"duration_ns": float64(chain.DurationNS), "trace_fraction": period,
			},
			Next: "a lock that is handed over in order makes every holder wait for a wake-up: take it less often, or let it be taken by whoever comes first",
		}}
	}
	return nil
}

// lasts tells whether a relay went on long enough to say something of the whole trace.
func lasts(chain recording.Chain, rec *recording.Recording) bool {
	if rec.Locks.Estimated {
		return time.Duration(chain.DurationNS) >= relayPiece
	}
	return float64(chain.DurationNS) >= relayPeriod*float64(rec.Session.DurationNS)
}

func relaySubject(chain recording.Chain) string {
	if chain.Name != "" {
		return chain.Name
	}
	return fmt.Sprintf("relay through %s", chain.Lock)
}

// relayMembers counts the threads in what is kept of a relay, and the turns of the one that
// has most.
func relayMembers(chain recording.Chain) (members, most int) {
	turns := map[int]int{}
	for _, tid := range chain.TIDs {
		turns[tid]++
		most = max(most, turns[tid])
	}
	return len(turns), most
}
