package output

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"memtrace/tracer/recording"
)

// timelineOf writes a recording as a timeline and reads its events.
func timelineOf(t testing.TB, rec *recording.Recording) []timelineEvent {
	t.Helper()
	var file bytes.Buffer
	if err := Timeline(&file, rec, Options{}); err != nil {
		t.Fatal(err)
	}
	var read struct {
		TraceEvents []timelineEvent `json:"traceEvents"`
	}
	if err := json.Unmarshal(file.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	return read.TraceEvents
}

// relayed is the recording with a relay whose times are known, in the middle of rounds.
func relayed(t testing.TB) *recording.Recording {
	rec := wholeRecording(t)
	chain := &rec.Locks.Chains[0]
	chain.StartNS, chain.TIDs = 2_000_000_000, []int{15414, 15415, 15416, 15414}
	chain.TimesNS = []int64{2_000_500_000, 2_000_700_000, 2_001_900_000, 2_040_000_000}
	rec.Arenas.Trims[0].TID = 15414
	return rec
}

func TestTimelineHoldsTheRecording(t *testing.T) {
	rec := relayed(t)
	count := map[string]int{}
	for _, event := range timelineOf(t, rec) {
		count[event.Phase+" "+event.Category]++
		if event.At < 0 || event.At > microseconds(rec.Session.DurationNS) {
			t.Errorf("%+v lies outside the trace", event)
		}
	}
	for kind, want := range map[string]int{
		"X round": len(rec.Rounds.Series), "X trim": 1, "i arena": len(rec.Arenas.Created),
		"b relay": 1, "e relay": 1, "X relay": 4, "s relay": 3, "f relay": 3,
	} {
		if count[kind] != want {
			t.Errorf("%s: %d events, want %d", kind, count[kind], want)
		}
	}
	if count["C "] == 0 || count["M "] < 10 {
		t.Errorf("counters and names: %v", count)
	}
}

// Slices of a track lie within each other or apart, or the viewers drop them; the ends of an
// arrow lie within slices.
func TestTimelineNests(t *testing.T) {
	nests(t, timelineOf(t, relayed(t)))
	nests(t, timelineOf(t, recordingOf(t, realTrace)))
	nests(t, timelineOf(t, recordingOf(t, "contend_convoy.json.gz")))
}

func nests(t *testing.T, events []timelineEvent) {
	t.Helper()
	open := map[int][]microseconds{} // the ends of the open slices, by thread
	ends := map[int]int{}
	var last microseconds
	for _, event := range events {
		if event.Phase != "M" && event.At < last {
			t.Fatalf("%+v comes too late", event)
		}
		last = event.At
		around := open[event.TID]
		for event.Phase != "M" && len(around) > 0 && around[len(around)-1] <= event.At && event.Phase == "X" {
			around = around[:len(around)-1]
		}
		switch event.Phase {
		case "X":
			end := event.At + *event.Duration
			if len(around) > 0 && end > around[len(around)-1] {
				t.Errorf("%+v sticks out of the slice around it", event)
			}
			open[event.TID] = append(around, end)
		case "s", "f":
			ends[event.ID]++
			if len(around) == 0 || event.At > around[len(around)-1] {
				t.Errorf("%+v ends in no slice", event)
			}
		}
	}
	for id, n := range ends {
		if n != 2 {
			t.Errorf("arrow %d has %d ends", id, n)
		}
	}
}

// The file is bounded, and says what it leaves out.
func TestTimelineIsBounded(t *testing.T) {
	rec := &recording.Recording{Rounds: &recording.Rounds{Series: make([]recording.Round, 3*mostTimelineEvents)}}
	for i := range rec.Rounds.Series {
		rec.Rounds.Series[i] = recording.Round{TID: 1 + i%3, Index: uint64(i), StartNS: int64(i) * 10, DurationNS: 5}
	}
	var file bytes.Buffer
	if err := Timeline(&file, rec, Options{}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(file.Bytes(), []byte(`"left_out":{"rounds":100000}`)) {
		t.Errorf("the file begins %.300s", file.Bytes())
	}
	if most := 12 << 20; file.Len() > most {
		t.Errorf("the file has %d bytes", file.Len())
	}
}

// Times keep their nanoseconds.
func TestMicroseconds(t *testing.T) {
	for ns, want := range map[microseconds]string{0: "0", 1: "0.001", 1_000: "1", 1_234_567_890: "1234567.890", lastMoment: "2305843009213693.951"} {
		if text, err := json.Marshal(ns); err != nil || string(text) != want {
			t.Errorf("%d: %s (%v), want %s", int64(ns), text, err, want)
		}
	}
}

// Names of any kind and odd numbers leave the file valid.
func TestTimelineOfOddRecordings(t *testing.T) {
	timelineOf(t, &recording.Recording{})
	odd := named(relayed(t), "\x1b\xff\"\\</script>")
	odd.Rounds.Series[0] = recording.Round{TID: -5, StartNS: math.MinInt64, DurationNS: math.MaxInt64}
	odd.Rounds.Series[1] = recording.Round{TID: -5, StartNS: math.MaxInt64, DurationNS: math.MaxInt64}
	odd.Allocation.Series = append(odd.Allocation.Series, recording.AllocationPoint{TimeNS: math.MaxInt64, Coverage: math.Inf(1)}, recording.AllocationPoint{TimeNS: -1, Coverage: math.NaN()})
	odd.Locks.Chains[0].TimesNS = []int64{5, 3, -1, math.MaxInt64}
	for _, event := range timelineOf(t, odd) {
		if event.At < 0 || event.Duration != nil && *event.Duration < 0 {
			t.Errorf("%+v", event)
		}
	}
}
