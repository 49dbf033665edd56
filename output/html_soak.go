package output

import (
	"fmt"
	"io"

	"memtrace/tracer/recording"
)

// SoakHTML writes the report of a soak as a page: for each start the verdict, the course of
// committed and live memory, and the figures of the text report.
func SoakHTML(w io.Writer, soak *recording.Soak, report recording.SoakReport, o Options) error {
	view := htmlPage{
		Title:      fmt.Sprintf("%s (pid %d)", clip(printable(soak.Header.Target.Command), 80), soak.Header.Target.PID),
		Header:     []string{fmt.Sprintf("%s every %s, %s", plural(uint64(len(soak.Samples)), "sample"), printable(soak.Header.Every), plural(uint64(len(report.Starts)), "start"))},
		ByMemtrace: "memtrace",
	}
	for _, note := range report.Notes {
		view.Header = append(view.Header, "note: "+printable(note))
	}
	for i, start := range report.Starts {
		samples := samplesOf(soak.Samples, report.Starts, i)
		taken := &blocks{}
		(&page{top: o.top(), blocks: taken}).soakStart(start, samples)
		view.Sections = append(view.Sections, htmlSection{
			ID:     fmt.Sprintf("start-%d", i+1),
			Title:  fmt.Sprintf("pid %d, %s, %s", start.PID, start.From.UTC().Format("2006-01-02 15:04:05 UTC"), spanText(start.Span)),
			Charts: charts(soakChart(start, samples)), Blocks: taken.all,
		})
	}
	return writePage(w, view)
}

// soakChart draws committed, live, and free and resident memory over a start, thinned to
// what a page can show.
func soakChart(start recording.SoakStart, samples []recording.Sample) *chart {
	const mostPoints = 1000
	step := max(1, len(samples)/mostPoints)
	var times []int64
	var committed, live, free []float64
	largest := 0.0
	for i := 0; i < len(samples); i += step {
		s := samples[i]
		times = append(times, s.Time.Sub(samples[0].Time).Nanoseconds())
		committed, live, free = append(committed, float64(s.CommittedBytes)), append(live, float64(s.LiveBytes)), append(free, float64(s.FreeResidentBytes))
		largest = max(largest, float64(s.CommittedBytes), float64(s.LiveBytes))
	}
	if len(times) < 2 {
		return nil
	}
	c := newChart("Committed memory (blue)", start.Span.Nanoseconds(), largest, true)
	c.line("a", "committed", times, committed, false)
	if start.Live != nil {
		c.Title = "Memory: committed (blue), live (green), free and resident (orange)"
		c.line("live", "live", times, live, false)
		c.line("free", "free and resident", times, free, false)
	}
	return c
}
