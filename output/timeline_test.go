package output

import (
	"bytes"
	"encoding/json"
	"testing"

	"memtrace/tracer/recording"
)

func TestTimeline(t *testing.T) {
	rec := wholeRecording(t)
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
	count := map[string]int{}
	for _, event := range read.TraceEvents {
		count[event.Phase+" "+event.Category]++
		if event.At < 0 || event.Duration < 0 || event.At > microseconds(rec.Session.DurationNS) {
			t.Errorf("%+v lies outside the trace", event)
		}
	}
	for kind, want := range map[string]int{"X round": len(rec.Rounds.Series), "X trim": 1, "i arena": len(rec.Arenas.Created), "X lock": 4, "s lock": 3, "f lock": 3} {
		if count[kind] != want {
			t.Errorf("%s: %d events, want %d", kind, count[kind], want)
		}
	}
	if count["C "] == 0 || count["M "] < len(rec.Scheduling.Threads) {
		t.Errorf("counters and names: %v", count)
	}
}

// Names of any kind and odd numbers leave the file valid.
func TestTimelineOfOddRecordings(t *testing.T) {
	for _, rec := range []*recording.Recording{{}, named(wholeRecording(t), "\x1b\xff\"\\</script>")} {
		var file bytes.Buffer
		if err := Timeline(&file, rec, Options{}); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(file.Bytes()) {
			t.Error("the timeline is no JSON")
		}
	}
}
