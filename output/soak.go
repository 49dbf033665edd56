package output

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"memtrace/tracer/recording"
)

// SoakText writes the report of a soak: for each start of the program the verdict first,
// then the figures, a picture of the series and what happened meanwhile.
func SoakText(w io.Writer, soak *recording.Soak, report recording.SoakReport, o Options) error {
	p := newPage(w, o)
	target := soak.Header.Target
	p.line("%s", p.bold(fmt.Sprintf("%s (pid %d)", clip(target.Command, 60), target.PID)))
	p.line("%s every %s, %s", plural(uint64(len(soak.Samples)), "sample"), soak.Header.Every, plural(uint64(len(report.Starts)), "start"))
	for _, note := range report.Notes {
		p.paragraph("note: ", note)
	}
	if len(report.Starts) == 0 {
		p.line("no sample yet: nothing can be said")
	}
	for i, start := range report.Starts {
		p.heading("pid %d, %s, %s", start.PID, start.From.Local().Format("2006-01-02 15:04:05"), spanText(start.Span))
		p.soakStart(start, samplesOf(soak.Samples, report.Starts, i))
	}
	return p.w.Flush()
}

// SoakJSON writes the report of a soak as JSON.
func SoakJSON(w io.Writer, report recording.SoakReport) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(report)
}

// samplesOf returns the samples of one start; the starts' samples follow each other.
func samplesOf(samples []recording.Sample, starts []recording.SoakStart, index int) []recording.Sample {
	from := 0
	for _, start := range starts[:index] {
		from += start.Samples
	}
	return samples[min(from, len(samples)):min(from+starts[index].Samples, len(samples))]
}

// soakStart writes one start.
func (p *page) soakStart(start recording.SoakStart, samples []recording.Sample) {
	p.paragraph("  ", start.Summary)
	p.paragraph("  next: ", start.Next)
	rows := [][]string{trendRow("committed", start.Committed)}
	if start.Live != nil {
		rows = append(rows, trendRow("live", *start.Live))
	}
	p.line("")
	p.table([]column{{"", false}, {"verdict", false}, {"first", true}, {"last", true}, {"floor q1", true}, {"q2", true}, {"q3", true}, {"q4", true}, {"drift", true}}, rows)
	p.line("")
	p.slope("committed", start.Committed)
	if start.Live != nil {
		p.slope("live", *start.Live)
	}
	p.series("committed", samples, func(s recording.Sample) uint64 { return s.CommittedBytes })
	if start.Live != nil {
		p.series("live", samples, func(s recording.Sample) uint64 { return s.LiveBytes })
	}
	for i, event := range start.Events {
		if i == p.top {
			p.more(len(start.Events), "event")
			break
		}
		p.paragraph("  "+event.Time.Local().Format("01-02 15:04:05")+"  ", printable(event.What))
	}
}

// trendRow is a series' row of the table of floors.
func trendRow(name string, t recording.Trend) []string {
	row := []string{name, string(t.Kind), sizeText(t.First), sizeText(t.Last)}
	for q := range 4 {
		if q < len(t.Floors) {
			row = append(row, sizeText(t.Floors[q]))
		} else {
			row = append(row, "-")
		}
	}
	return append(row, changeText(t.Drift))
}

// slope writes the slope of the local minima with its interval, the warm-up and the
// largest step, as far as there are any.
func (p *page) slope(name string, t recording.Trend) {
	if t.Kind == recording.TooShort {
		return
	}
	text := fmt.Sprintf("local minima %s/h (95 %% of %s to %s)", changeText(t.Slope), changeText(t.SlopeLow), changeText(t.SlopeHigh))
	if t.WarmUpEnd > 0 {
		text += fmt.Sprintf(", after a warm-up of %s", spanText(t.WarmUpEnd))
	}
	if t.Step != 0 {
		text += fmt.Sprintf(", largest step %s after %s", changeText(t.Step), spanText(t.StepAt))
	}
	p.paragraph(fmt.Sprintf("  %-10s ", name), text)
}

// seriesColumns is the width of a series' picture.
const seriesColumns = 80

// series draws the readings as a line of bars, the least of each slice of time, from the
// lowest reading to the highest.
func (p *page) series(name string, samples []recording.Sample, value func(recording.Sample) uint64) {
	if len(samples) < 2 {
		return
	}
	n := min(seriesColumns, len(samples))
	values := make([]float64, n)
	for i := range values {
		part := samples[i*len(samples)/n : (i+1)*len(samples)/n]
		least := value(part[0])
		for _, sample := range part {
			least = min(least, value(sample))
		}
		values[i] = float64(least)
	}
	p.line("  %-10s %s", name, bars(values))
}

// bars draws values as block characters, the lowest as the lowest bar.
func bars(values []float64) string {
	levels := []rune("▁▂▃▄▅▆▇█")
	low, high := values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	drawn := make([]rune, len(values))
	for i, v := range values {
		level := 0
		if high > low {
			level = int((v - low) / (high - low) * float64(len(levels)-1))
		}
		drawn[i] = levels[level]
	}
	return string(drawn)
}

// changeText writes a change of size with its sign.
func changeText(bytes float64) string {
	if bytes > 0 {
		return "+" + sizeText(bytes)
	}
	if bytes < 0 {
		return "-" + sizeText(-bytes)
	}
	return "0 B"
}

// spanText writes a time span to the second, or to the minute when it is long.
func spanText(d time.Duration) string {
	if d >= time.Hour {
		return d.Round(time.Minute).String()
	}
	return d.Round(time.Second).String()
}

// SoakProgress writes a sample as a line for a terminal, without its end.
func SoakProgress(s recording.Sample) string {
	text := fmt.Sprintf("%s  committed %s", s.Time.Local().Format("15:04:05"), bytesText(s.CommittedBytes))
	if s.Heap {
		text += fmt.Sprintf(", live %s, free and resident %s in %s", bytesText(s.LiveBytes), bytesText(s.FreeResidentBytes), plural(uint64(s.Arenas), "arena"))
	}
	return fmt.Sprintf("%-*s", pageWidth-1, text)
}
