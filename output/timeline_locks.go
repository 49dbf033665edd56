package output

import (
	"slices"

	"memtrace/tracer/recording"
)

// handoffArrow is what the arrows from a waker to the thread that it woke are called.
const handoffArrow = "handoff"

// Bounds of a damaged recording; the tracer keeps 10 relays with 16 threads.
const (
	mostRelays     = 1000
	mostRelayLinks = 50
)

// locks adds the relays over locks, and the longest time during which each lock had a
// thread asleep on it. A recording keeps no single waits.
func (t *timeline) locks(l *recording.Locks) {
	if l == nil {
		return
	}
	for _, lock := range l.Locks {
		if busy := lock.Longest; busy != nil && busy.DurationNS > 0 && !lock.Parked() {
			start := momentOf(busy.StartNS)
			t.span(timelineSlice{name: "threads wait for " + printable(lockName(lock)), category: "lock", start: start, end: start + momentOf(busy.DurationNS), args: map[string]any{
				"lock": lock.Address.String(), "kind": printable(lock.Kind), "handoffs": busy.Handoffs, "wakees": busy.Wakees,
			}})
		}
	}
	for i, chain := range l.Chains {
		if i == mostRelays {
			t.thinned["relays"] = len(l.Chains) - mostRelays
			return
		}
		t.relay(chain)
	}
}

// relay adds a relay as a whole and, where their times are known, its last threads: each
// one's slice reaches from its waking to its own wake of the next.
func (t *timeline) relay(chain recording.Chain) {
	name := clip(printable(chain.Name), longestOnPage)
	if chain.Name == "" {
		name = chain.Lock.String()
	}
	start := momentOf(chain.StartNS)
	t.span(timelineSlice{name: "relay over " + name, category: "relay", start: start, end: start + momentOf(chain.DurationNS), args: map[string]any{
		"lock": chain.Lock.String(), "handoffs": chain.Length, "tids": firstOf(chain.TIDs, mostRelayLinks),
	}})
	if len(chain.TimesNS) != len(chain.TIDs) || slices.Contains(chain.TIDs, 0) {
		return // a version that kept no times, or a thread that was not known
	}
	tids := firstOf(chain.TIDs, mostRelayLinks)
	arrow := 0
	for i, tid := range tids {
		woken := momentOf(chain.TimesNS[i])
		s := timelineSlice{name: name, category: "relay", start: woken, end: woken + 1000, in: arrow, args: map[string]any{"lock": chain.Lock.String()}}
		arrow = 0
		if i+1 < len(tids) {
			arrow = t.nextID()
			s.end = max(woken, momentOf(chain.TimesNS[i+1]))
			s.args["wakes_tid"] = tids[i+1]
		}
		s.out = arrow
		t.slice(tid, s)
	}
}

func firstOf[T any](all []T, most int) []T { return all[:min(len(all), most)] }
