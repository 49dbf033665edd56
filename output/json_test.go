package output

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memtrace/tracer/recording"
)

// But for white space, the JSON is that of encoding/json.
func TestJSONIsWhatTheLibraryWrites(t *testing.T) {
	convoy := recordingOf(t, "contend_convoy.json.gz")
	convoy.Target.Processes = []recording.Process{{PID: 1, Name: "<a&b>\u2028\""}}
	for _, rec := range []*recording.Recording{{}, wholeRecording(t), convoy} {
		var file, want, got bytes.Buffer
		if err := JSON(&file, rec, Options{}); err != nil {
			t.Fatal(err)
		}
		encoder := json.NewEncoder(&want)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(rec); err != nil {
			t.Fatal(err)
		}
		if err := json.Compact(&got, file.Bytes()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(bytes.TrimSpace(want.Bytes())), got.String()); diff != "" {
			t.Errorf("(-encoding/json +ours)\n%s", diff)
		}
	}
}
