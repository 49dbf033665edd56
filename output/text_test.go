package output

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// The report of a trace in every dress: as it is, in ASCII, coloured, in a narrow window.
func TestTextInEveryDress(t *testing.T) {
	rec := recordingOf(t, "pollloop.json.gz")
	rec.Findings = wholeRecording(t).Findings
	for name, o := range map[string]Options{
		"report.txt": {Top: 5}, "report_ascii.txt": {Top: 5, Plain: true}, "report_colour.txt": {Top: 2, Colour: true}, "report_narrow.txt": {Top: 2, Width: 60},
	} {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			if err := Text(&text, rec, o); err != nil {
				t.Fatal(err)
			}
			matchGolden(t, name, text.Bytes())
		})
	}
}

// A real convoy: eight threads that sleep while they hold one mutex.
func TestTextOfAConvoy(t *testing.T) {
	var text bytes.Buffer
	if err := Text(&text, recordingOf(t, "contend_convoy.json.gz"), Options{Top: 3}); err != nil {
		t.Fatal(err)
	}
	matchGolden(t, "report_convoy.txt", text.Bytes())
}

// However long and odd the names, no line is wider than the page, and the terminal is safe.
func TestTextKeepsItsWidth(t *testing.T) {
	hostile := largeRecording(t)
	hostile.Allocation.Sites[1].Stack[0].Function = "\x1b[2J\u202e" + strings.Repeat("模板", 90)
	hostile.Allocation.Threads[0].Name = "a\nb\tc"
	hostile.Target.Command = strings.Repeat("/very/long/path", 20)
	for _, o := range []Options{{}, {Plain: true}, {Colour: true}} {
		var text bytes.Buffer
		if err := Text(&text, hostile, o); err != nil {
			t.Fatal(err)
		}
		colours := regexp.MustCompile("\x1b\\[[0-9;]*m")
		for line := range strings.Lines(text.String()) {
			line = strings.TrimSuffix(line, "\n")
			if bare := colours.ReplaceAllString(line, ""); columns(bare) > pageWidth {
				t.Errorf("%+v: %d columns: %.120q", o, columns(bare), bare)
			}
			for _, r := range line {
				if o.Plain && r > unicode.MaxASCII || r != '\x1b' && !unicode.IsPrint(r) || r == '\x1b' && !o.Colour {
					t.Errorf("%+v: the line holds %q", o, r)
				}
			}
		}
	}
}
