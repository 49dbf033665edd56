package output

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"memtrace/tracer/recording"
)

// Diff writes a comparison as people read it: the verdicts first, then the table, then the
// sites that changed; at most 100 columns wide.
func Diff(w io.Writer, c *recording.Comparison, o Options) error {
	p := newPage(w, o)
	p.paragraph("before: ", sideText(c.Before))
	p.paragraph("after:  ", sideText(c.After))
	for _, warning := range c.Warnings {
		p.paragraphAfter(p.escape("33", "warning: "), len("warning: "), printable(warning))
	}
	p.heading("Verdict")
	p.paragraph("  ", c.Summary)
	p.diffTable(c)
	p.diffSites(c)
	return p.w.Flush()
}

// DiffJSON writes a comparison as JSON.
func DiffJSON(w io.Writer, c *recording.Comparison) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(c)
}

// sideText says what one side is.
func sideText(s recording.ComparisonSide) string {
	text := fmt.Sprintf("%s (pid %d), ", clip(printable(s.Command), 50), s.PID)
	if s.Kind == "soak" {
		text += plural(uint64(s.Samples), "sample") + " in " + spanText(time.Duration(s.DurationNS))
	} else {
		text += "traced for " + durationText(s.DurationNS)
	}
	if !s.Started.IsZero() {
		text += ", " + s.Started.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	return text
}

// diffTable writes the A/B table. A difference that the scatter of the series explains is
// marked and not coloured.
func (p *page) diffTable(c *recording.Comparison) {
	if len(c.Changes) == 0 {
		return
	}
	p.heading("Before and after")
	var rows [][]string
	noisy, unknown := false, false
	for _, row := range c.Changes {
		mark := ""
		switch {
		case row.WithinNoise:
			mark, noisy = "~", true
		case row.Noise == 0 && row.Difference != 0:
			mark, unknown = "?", true
		}
		rows = append(rows, []string{rowName(row), quantityText(row.Before, row.Unit), quantityText(row.After, row.Unit),
			signedText(row.Difference, row.Unit), relativeText(row), noiseText(row), mark})
	}
	p.table([]column{{"", false}, {"before", true}, {"after", true}, {"change", true}, {"relative", true}, {"noise", true}, {"", false}}, rows)
	if noisy {
		p.line("  ~ within the noise of the two series: it may be chance")
	}
	if unknown {
		p.line("  ? noise unknown: a single look on each side, or series that stood still")
	}
}

// rowName is what a row is called; times are shares of one processor.
func rowName(row recording.Change) string {
	if row.Unit == "ns/s" {
		return row.Name + ", of a CPU"
	}
	return row.Name
}

// quantityText writes a value in its unit.
func quantityText(value float64, unit string) string {
	switch unit {
	case "bytes":
		return sizeText(math.Round(value))
	case "bytes/s":
		return sizeText(value) + "/s"
	case "count/s":
		return rateText(value)
	case "ns/s":
		return percentText(value / 1e9)
	}
	if value == math.Trunc(value) {
		return countText(uint64(max(0, value)))
	}
	return figures(value)
}

// signedText writes a difference with its sign.
func signedText(value float64, unit string) string {
	switch {
	case unit == "ns/s" && math.Abs(value) < 1e6:
		return quantityText(math.Abs(value), unit) // less than a tenth of a percent
	case value > 0:
		return "+" + quantityText(value, unit)
	case value < 0:
		return "-" + quantityText(-value, unit)
	}
	return "0"
}

// relativeText writes the ratio: a percentage, or a factor from twice upwards.
func relativeText(row recording.Change) string {
	switch {
	case row.Difference == 0:
		return "="
	case row.Before == 0:
		return "new"
	case row.After == 0:
		return "-100 %"
	case row.Ratio >= 2:
		return "×" + figures(row.Ratio)
	}
	if percent := math.Round((row.Ratio - 1) * 100); percent != 0 {
		return fmt.Sprintf("%+.0f %%", percent)
	}
	return "0 %"
}

func noiseText(row recording.Change) string {
	if row.Noise == 0 {
		return ""
	}
	return "± " + quantityText(row.Noise, row.Unit)
}

// diffSites writes the sites that changed, the largest change first.
func (p *page) diffSites(c *recording.Comparison) {
	if len(c.Sites) == 0 {
		return
	}
	p.heading("Sites that changed (%s did not)", plural(uint64(c.SitesUnchanged), "site"))
	for i, s := range c.Sites {
		if i == p.top {
			break
		}
		p.line("")
		head := fmt.Sprintf("%-8s  %s → %s in %s", s.Kind, sizeText(s.BeforePerS)+"/s", sizeText(s.AfterPerS)+"/s", s.Entry)
		if s.BeforeLive != s.AfterLive {
			head += fmt.Sprintf(", live %s", change(s.BeforeLive, s.AfterLive))
		}
		p.line("  %s", p.bold(clip(head, pageWidth-2)))
		for _, f := range s.Stack {
			p.frame(f)
		}
	}
	p.more(len(c.Sites), "site")
}

// DiffFormatForFile returns the writer that a file's suffix asks for.
func DiffFormatForFile(path string) (func(io.Writer, *recording.Comparison, Options) error, error) {
	switch {
	case strings.HasSuffix(path, ".txt"):
		return Diff, nil
	case strings.HasSuffix(path, ".html"):
		return DiffHTML, nil
	case strings.HasSuffix(path, ".svg"):
		return DiffSVG, nil
	case strings.HasSuffix(path, ".json"):
		return func(w io.Writer, c *recording.Comparison, _ Options) error { return DiffJSON(w, c) }, nil
	}
	return nil, fmt.Errorf("a comparison cannot be written to %q: end the name in .txt, .json, .svg or .html", path)
}
