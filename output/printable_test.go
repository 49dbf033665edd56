package output

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"parse_envelope":         "parse_envelope",
		"naïve größe 日本":         "naïve größe 日本",
		"\x1b[2J\x07bell":        "?[2J?bell",
		"bad\xff\xfebytes":       "bad??bytes",
		"left\u202eright":        "left?right",
		"line\nbreak\ttab\x00":   "line?break?tab?",
		"std::map<a, b>; \"q\" ": "std::map<a, b>; \"q\" ",
	} {
		if got := printable(text); got != want {
			t.Errorf("printable(%q) = %q, want %q", text, got, want)
		}
	}
	if got := printable(strings.Repeat("é", 5000)); len(got) > longestName+8 || !utf8.ValidString(got) {
		t.Errorf("a name of 10000 bytes becomes %d bytes", len(got))
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("a\x1b]0;title\x07")
	f.Fuzz(func(t *testing.T, text string) {
		got := printable(text)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\x1b\n\r\x07\u009b") {
			t.Errorf("printable(%q) = %q", text, got)
		}
	})
}

func TestSafeLine(t *testing.T) {
	for _, c := range []struct {
		line    string
		colours bool
		want    string
	}{
		{"≤ 2 B  █ ±", false, "≤ 2 B  █ ±"},
		{"\x1b[1;31mhigh\x1b[0m", true, "\x1b[1;31mhigh\x1b[0m"},
		{"\x1b[1;31mhigh", false, "?[1;31mhigh"},
		{"\x1b]0;title\a \x1b[2J \u202e \xff", true, "?]0;title? ?[2J ? ?"},
	} {
		if got := safeLine(c.line, c.colours); got != c.want {
			t.Errorf("%q: got %q, want %q", c.line, got, c.want)
		}
	}
}
