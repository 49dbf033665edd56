package output

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"memtrace/tracer/recording"
)

// timelineEvent is an event of the Trace Event Format (the "JSON Array Format" of
// chrome://tracing), which ui.perfetto.dev reads. Times are in microseconds.
type timelineEvent struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"` // X slice, i instant, C counter, M metadata, s and f the ends of an arrow
	At       float64        `json:"ts"`
	Duration float64        `json:"dur,omitempty"`
	PID      int            `json:"pid"`
	TID      int            `json:"tid"`
	Scope    string         `json:"s,omitempty"`  // of an instant: t thread
	ID       int            `json:"id,omitempty"` // of an arrow: its two ends share it
	Binds    string         `json:"bp,omitempty"` // of an arrow's end: e, to the slice that is there
	Args     map[string]any `json:"args,omitempty"`
}

// Timeline writes the recording as a timeline: the rounds of each thread, trims, arenas and
// thresholds as they happened, relays over locks, and what was allocated meanwhile. It is as
// bounded as the lists of the recording.
func Timeline(w io.Writer, rec *recording.Recording, _ Options) error {
	t := &timeline{pid: rec.Target.PID, named: map[int]bool{}}
	t.meta("process_name", 0, printable(rec.Target.Command))
	t.threadNames(rec)
	t.rounds(rec.Rounds)
	t.arenas(rec.Arenas, rec)
	t.chains(rec.Locks)
	t.course(rec.Allocation)
	buffered := bufio.NewWriter(w)
	fmt.Fprint(buffered, `{"displayTimeUnit":"ns","traceEvents":[`)
	for i, event := range t.events {
		text, err := json.Marshal(event)
		if err != nil {
			return fmt.Errorf("write the timeline: %w", err)
		}
		if i > 0 {
			buffered.WriteByte(',')
		}
		buffered.WriteByte('\n')
		buffered.Write(text)
	}
	fmt.Fprintln(buffered, "\n]}")
	return buffered.Flush()
}

// timeline collects events.
type timeline struct {
	pid    int
	named  map[int]bool
	arrows int
	events []timelineEvent
}

func microseconds(ns int64) float64 { return float64(ns) / 1e3 }

func (t *timeline) meta(kind string, tid int, name string) {
	t.events = append(t.events, timelineEvent{Name: kind, Phase: "M", PID: t.pid, TID: tid, Args: map[string]any{"name": name}})
}

func (t *timeline) slice(category, name string, tid int, startNS, durationNS int64, args map[string]any) {
	t.events = append(t.events, timelineEvent{Name: name, Category: category, Phase: "X", At: microseconds(startNS),
		Duration: microseconds(max(0, durationNS)), PID: t.pid, TID: tid, Args: args})
}

func (t *timeline) instant(category, name string, tid int, atNS int64, args map[string]any) {
	t.events = append(t.events, timelineEvent{Name: name, Category: category, Phase: "i", Scope: "t", At: microseconds(atNS), PID: t.pid, TID: tid, Args: args})
}

func (t *timeline) counter(name string, atNS int64, value float64) {
	t.events = append(t.events, timelineEvent{Name: name, Phase: "C", At: microseconds(atNS), PID: t.pid, Args: map[string]any{"value": value}})
}

// threadNames names the tracks.
func (t *timeline) threadNames(rec *recording.Recording) {
	name := func(tid int, text string) {
		if !t.named[tid] && tid != 0 {
			t.named[tid] = true
			t.meta("thread_name", tid, printable(text))
		}
	}
	if rec.Scheduling != nil {
		for _, thread := range rec.Scheduling.Threads {
			name(thread.TID, thread.Name)
		}
	}
	if rec.Allocation != nil {
		for _, thread := range rec.Allocation.Threads {
			name(thread.TID, thread.Name)
		}
	}
}

func (t *timeline) rounds(r *recording.Rounds) {
	if r == nil {
		return
	}
	for _, round := range r.Series {
		t.slice("round", fmt.Sprintf("round %d", round.Index), round.TID, round.StartNS, round.DurationNS,
			map[string]any{"allocs": round.Allocs, "alloc_bytes": round.AllocBytes, "cpu_ns": round.CPUNS})
	}
}

// arenas adds what happened to glibc's arenas, and how many there were.
func (t *timeline) arenas(a *recording.Arenas, rec *recording.Recording) {
	if a == nil {
		return
	}
	count := 0
	if rec.HeapBefore != nil {
		count = len(rec.HeapBefore.Arenas)
		t.counter("arenas", 0, float64(count))
	}
	for _, event := range a.Created {
		count++
		t.instant("arena", "arena created", event.TID, event.TimeNS, map[string]any{"arena": event.Arena.String(), "cause": printable(event.Cause), "thread": printable(event.Thread)})
		t.counter("arenas", event.TimeNS, float64(count))
	}
	for _, event := range a.Reused {
		t.instant("arena", "arena reused", event.TID, event.TimeNS, map[string]any{"arena": event.Arena.String(), "thread": printable(event.Thread)})
	}
	for _, trim := range a.Trims {
		t.slice("trim", "malloc_trim", trim.TID, trim.TimeNS, trim.DurationNS,
			map[string]any{"rss_before_bytes": trim.RSSBeforeBytes, "rss_after_bytes": trim.RSSAfterBytes, "waiters": trim.Waiters})
	}
	for _, rise := range a.Thresholds {
		t.instant("arena", "mmap threshold rose", rise.TID, rise.TimeNS, map[string]any{"before_bytes": rise.BeforeBytes, "after_bytes": rise.AfterBytes})
	}
}

// chains adds the longest relays: the turns of the threads, with an arrow from each to the
// one that it woke. Of a long relay the recording keeps the last turns.
func (t *timeline) chains(l *recording.Locks) {
	if l == nil {
		return
	}
	for _, chain := range l.Chains {
		args := map[string]any{"lock": chain.Lock.String(), "handoffs": chain.Length}
		name := "relay over " + printable(chain.Name)
		turns := min(len(chain.TIDs), len(chain.TimesNS))
		for i := range turns {
			end := chain.StartNS + chain.DurationNS
			if i+1 < turns {
				end = chain.TimesNS[i+1]
			}
			t.slice("lock", name, chain.TIDs[i], chain.TimesNS[i], end-chain.TimesNS[i], args)
			if i+1 < turns && end > chain.TimesNS[i] {
				t.arrow(chain.TIDs[i], chain.TIDs[i+1], end)
			}
		}
	}
}

// arrow draws a handoff, from within the slice of the waker to the beginning of that of the
// woken thread.
func (t *timeline) arrow(from, to int, atNS int64) {
	t.arrows++
	event := timelineEvent{Name: "handoff", Category: "lock", Phase: "s", At: microseconds(atNS - 1), PID: t.pid, TID: from, ID: t.arrows}
	t.events = append(t.events, event)
	event.Phase, event.At, event.TID, event.Binds = "f", microseconds(atNS), to, "e"
	t.events = append(t.events, event)
}

// course adds what was allocated in each slice of the trace.
func (t *timeline) course(a *recording.Allocation) {
	if a == nil {
		return
	}
	from := int64(0)
	for _, point := range a.Series {
		if seconds := float64(point.TimeNS-from) / 1e9 * point.Coverage; seconds > 0 {
			t.counter("allocated, bytes a second", from, float64(point.AllocBytes)/seconds)
		}
		from = point.TimeNS
	}
}
