package output

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"memtrace/tracer/recording"
)

func TestSoakHTML(t *testing.T) {
	soak := &recording.Soak{Header: recording.SoakHeader{Every: "5m0s", Target: recording.Target{Command: "<script>", PID: 7}}}
	start := recording.SoakStart{PID: 7, Summary: "plateau: committed memory stays", Next: "nothing grows", Live: &recording.Trend{Kind: recording.Plateau}, Span: 5000 * time.Minute}
	for i := range 5000 {
		soak.Samples = append(soak.Samples, recording.Sample{Time: time.Unix(int64(i)*60, 0), CommittedBytes: 600 << 20, LiveBytes: 44 << 20})
	}
	start.Samples = len(soak.Samples)
	var page bytes.Buffer
	if err := SoakHTML(&page, soak, recording.SoakReport{Starts: []recording.SoakStart{start}, Notes: []string{"a torn line"}}, Options{}); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	for _, words := range []string{"plateau: committed memory stays", "line-live", "a torn line", "768 MiB", "&lt;script&gt;"} {
		if !strings.Contains(text, words) {
			t.Errorf("the page lacks %q", words)
		}
	}
	if strings.Count(text, "<script") != 2 || len(text) > 1<<20 {
		t.Errorf("%d scripts, %d bytes", strings.Count(text, "<script"), len(text))
	}
	if err := SoakHTML(&page, &recording.Soak{}, recording.SoakReport{}, Options{}); err != nil {
		t.Error(err)
	}
}
