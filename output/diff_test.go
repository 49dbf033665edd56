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

// The page of a comparison holds the figures of its text, and names that are markup stay text.
func TestDiffHTML(t *testing.T) {
	c := sampleComparison(t)
	c.After.Command, c.Warnings, c.Stacks[0].Stack[0].Function = "<script>", append(c.Warnings, "<img src=x>"), "</title><script>"
	var file bytes.Buffer
	if err := DiffHTML(&file, c, Options{}); err != nil {
		t.Fatal(err)
	}
	shown := textOf(file.String())
	taken := &blocks{}
	(&page{blocks: taken}).diffTable(c)
	for _, b := range taken.all {
		for _, row := range b.Rows {
			for _, cell := range row {
				if !strings.Contains(shown, cell.Text) {
					t.Errorf("the page lacks %q", cell.Text)
				}
			}
		}
	}
	if !strings.Contains(strings.Join(strings.Fields(shown), " "), strings.Join(strings.Fields(c.Summary), " ")) {
		t.Error("the page lacks the verdict")
	}
	if strings.Count(file.String(), "<script") != 3 || strings.Contains(file.String(), "<img") {
		t.Error("a name became markup")
	}
}
