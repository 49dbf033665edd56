package output

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"memtrace/tracer/recording"
)

// mostTimelineEvents bounds each kind of event; a list that is longer is thinned evenly.
const mostTimelineEvents = 50_000

// Timeline writes the recording in the Trace Event Format (its "JSON Object Format"), for
// ui.perfetto.dev and chrome://tracing: the rounds of each thread and trims as slices,
// relays over locks as slices of the threads that they went through with arrows from waker
// to woken, arenas and thresholds as they happened, and counters of what was allocated
// meanwhile.
func Timeline(w io.Writer, rec *recording.Recording, _ Options) error {
	t := &timeline{pid: rec.Target.PID, slices: map[int][]timelineSlice{}, seen: map[int]bool{}, thinned: map[string]int{}}
	t.rounds(rec.Rounds)
	t.arenas(rec.Arenas)
	t.locks(rec.Locks)
	t.course(rec.Allocation)
	t.arenaCount(rec)
	t.draw()
	t.describe(rec)
	return t.write(w, rec)
}

// timelineEvent is an event of the format.
type timelineEvent struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"` // X slice, b and e ends of a span of the process, i instant, C counter, s and f ends of an arrow, M metadata
	At       microseconds   `json:"ts"`
	Duration *microseconds  `json:"dur,omitempty"`
	PID      int            `json:"pid"`
	TID      int            `json:"tid"`
	ID       int            `json:"id,omitempty"`
	Scope    string         `json:"s,omitempty"`  // of an instant: t thread
	Binding  string         `json:"bp,omitempty"` // of an arrow's end: e the slice around it
	Args     map[string]any `json:"args,omitempty"`
}

// microseconds is a time since the start of the trace in nanoseconds, written in the
// format's unit.
type microseconds int64

// lastMoment bounds the times that a damaged recording may claim.
const lastMoment = math.MaxInt64 / 4

func momentOf(ns int64) microseconds { return microseconds(min(max(0, ns), lastMoment)) }

// MarshalJSON writes three decimals, so that no nanosecond is lost.
func (m microseconds) MarshalJSON() ([]byte, error) {
	text := strconv.AppendInt(nil, int64(m)/1000, 10)
	if rest := int64(m) % 1000; rest != 0 {
		text = fmt.Appendf(text, ".%03d", rest)
	}
	return text, nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (m *microseconds) UnmarshalJSON(text []byte) error {
	value, err := strconv.ParseFloat(string(text), 64)
	*m = microseconds(math.Round(value * 1000))
	return err
}

// timeline collects events.
type timeline struct {
	pid     int
	slices  map[int][]timelineSlice // by thread
	seen    map[int]bool            // threads that something happened on
	thinned map[string]int          // how many of each kind are left out
	events  []timelineEvent
	ids     int // the last one given to an arrow or a span
}

// timelineSlice is a slice of a thread's track. in and out are the arrows that end and begin
// at it, 0 = none.
type timelineSlice struct {
	name, category string
	start, end     microseconds
	in, out        int
	args           map[string]any
}

// slice adds one to a thread's track; those of the whole process have a track of their own.
func (t *timeline) slice(tid int, s timelineSlice) {
	if tid == 0 {
		t.span(s)
		return
	}
	t.seen[tid] = true
	t.slices[tid] = append(t.slices[tid], s)
}

// span adds what belongs to no thread.
func (t *timeline) span(s timelineSlice) {
	id := t.nextID()
	begin := timelineEvent{Name: s.name, Category: s.category, Phase: "b", At: s.start, PID: t.pid, TID: t.pid, ID: id, Args: s.args}
	end := timelineEvent{Name: s.name, Category: s.category, Phase: "e", At: s.end, PID: t.pid, TID: t.pid, ID: id}
	t.events = append(t.events, begin, end)
}

func (t *timeline) nextID() int {
	t.ids++
	return t.ids
}

// instant adds something that has no duration.
func (t *timeline) instant(tid int, category, name string, atNS int64, args map[string]any) {
	t.seen[tid] = true
	t.events = append(t.events, timelineEvent{Name: name, Category: category, Phase: "i", Scope: "t", At: momentOf(atNS), PID: t.pid, TID: tid, Args: args})
}

func (t *timeline) counter(name string, atNS int64, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	t.events = append(t.events, timelineEvent{Name: name, Phase: "C", At: momentOf(atNS), PID: t.pid, Args: map[string]any{"value": value}})
}

// draw turns the slices into events. Slices of one track must lie within each other or
// apart: what sticks out of the one around it is cut off there and keeps its duration among
// its arguments.
func (t *timeline) draw() {
	for tid, track := range t.slices {
		slices.SortStableFunc(track, func(a, b timelineSlice) int {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
		})
		var around []microseconds // the ends of the slices that are open
		for _, s := range track {
			for len(around) > 0 && around[len(around)-1] <= s.start {
				around = around[:len(around)-1]
			}
			if n := len(around); n > 0 && s.end > around[n-1] {
				s.args["duration_ns"] = int64(s.end - s.start)
				s.end = around[n-1]
			}
			around = append(around, s.end)
			t.drawSlice(tid, s)
		}
	}
	slices.SortStableFunc(t.events, func(a, b timelineEvent) int { return cmp.Compare(a.At, b.At) })
}

// drawSlice adds the slice and the ends of its arrows, which lie within it.
func (t *timeline) drawSlice(tid int, s timelineSlice) {
	duration := s.end - s.start
	t.events = append(t.events, timelineEvent{Name: s.name, Category: s.category, Phase: "X", At: s.start, Duration: &duration, PID: t.pid, TID: tid, Args: s.args})
	if s.in != 0 {
		t.events = append(t.events, timelineEvent{Name: handoffArrow, Category: s.category, Phase: "f", Binding: "e", At: s.start, PID: t.pid, TID: tid, ID: s.in})
	}
	if s.out != 0 {
		t.events = append(t.events, timelineEvent{Name: handoffArrow, Category: s.category, Phase: "s", At: max(s.start, s.end-1), PID: t.pid, TID: tid, ID: s.out})
	}
}

// write writes the events, one a line.
func (t *timeline) write(w io.Writer, rec *recording.Recording) error {
	buffered := bufio.NewWriter(w)
	about, err := json.Marshal(t.about(rec))
	if err != nil {
		return fmt.Errorf("write the timeline: %w", err)
	}
	fmt.Fprintf(buffered, `{"displayTimeUnit":"ns","otherData":%s,"traceEvents":[`, about)
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
