package output

import (
	"bytes"
	"strings"
	"testing"

	between "memtrace/tracer/compare"
	"memtrace/tracer/recording"
)

// sampleComparison is one workload with many arenas and with one; a site is gone, one is new.
func sampleComparison(t testing.TB) *recording.Comparison {
	before, after := recordingOf(t, "pollloop.json.gz"), recordingOf(t, "pollloop_one_arena.json.gz")
	before.Allocation.Sites[3].Stack[0].Function = "prepare_statement_uncached"
	after.Target.BuildID = "another build"
	return between.Sides(between.OfRecording(before), between.OfRecording(after))
}

func TestDiffText(t *testing.T) {
	var text bytes.Buffer
	if err := Diff(&text, sampleComparison(t), Options{Top: 3}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if columns(strings.TrimSuffix(line, "\n")) > pageWidth {
			t.Errorf("%d columns: %q", columns(line)-1, line)
		}
	}
	matchGolden(t, "diff.txt", text.Bytes())
}
