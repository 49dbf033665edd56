package output

import (
	"fmt"
	"math"
	"strings"

	"memtrace/tracer/recording"
)

// The chart's own coordinates; the page stretches them to its width.
const (
	chartWidth   = 1000.0
	chartHeight  = 200.0
	chartColumns = 250 // the most bars that a chart has
)

// chart is a picture of a quantity over the time of the trace. Its labels are no part of
// the picture, so that they stay legible however narrow the page is.
type chart struct {
	Title, Note    string
	YTicks, XTicks []tick
	Lines          []chartLine
	Bars           []chartBar
	duration       int64   // of the whole axis
	top            float64 // of the other axis
}

// tick is a label at a place, in percent of the axis.
type tick struct {
	At    float64
	Label string
}

// chartLine is a line through points, as SVG writes them.
type chartLine struct{ Class, Name, Points string }

// chartBar is a bar with the text that shows when it is pointed at.
type chartBar struct {
	X, Y, Width, Height float64
	Class, Tip          string
}

// newChart makes an empty chart over the trace, from nothing to the largest value.
func newChart(title string, duration int64, largest float64, bytes bool) *chart {
	c := &chart{Title: title, duration: max(1, duration)}
	step := niceStep(largest, bytes)
	c.top = max(step, math.Ceil(largest/step)*step)
	for value := 0.0; value <= c.top*1.001; value += step {
		label := figuresOf(value)
		if bytes {
			label = roundSize(value)
		}
		c.YTicks = append(c.YTicks, tick{value / c.top * 100, label})
	}
	const parts = 4
	for i := range parts + 1 {
		c.XTicks = append(c.XTicks, tick{float64(i) / parts * 100, durationText(c.duration / parts * int64(i))})
	}
	return c
}

// niceStep is a round number that goes two to five times into the largest value.
func niceStep(largest float64, bytes bool) float64 {
	if !(largest > 0) || math.IsInf(largest, 0) {
		return 1
	}
	if bytes {
		return math.Exp2(math.Ceil(math.Log2(largest/4) - 1e-9))
	}
	magnitude := math.Pow(10, math.Floor(math.Log10(largest/2)))
	for _, factor := range []float64{1, 2, 5} {
		if largest/(factor*magnitude) <= 5 {
			return factor * magnitude
		}
	}
	return 10 * magnitude
}

// roundSize writes a round number of bytes without needless figures.
func roundSize(bytes float64) string {
	text := sizeText(bytes)
	number, unit, _ := strings.Cut(text, " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return number + " " + unit
}

func figuresOf(value float64) string {
	if value == math.Trunc(value) && value < 1e15 {
		return countText(uint64(max(0, value)))
	}
	return figures(value)
}

func (c *chart) x(ns int64) float64 {
	return min(1, max(0, float64(ns)/float64(c.duration))) * chartWidth
}

func (c *chart) y(value float64) float64 {
	return chartHeight - min(1, max(0, value/c.top))*chartHeight
}

// bar adds a bar for a value that belongs to a span of time.
func (c *chart) bar(class string, fromNS, toNS int64, value float64, tip string) {
	x, y := c.x(fromNS), c.y(value)
	c.Bars = append(c.Bars, chartBar{X: tenth(x), Y: tenth(y), Width: tenth(max(1, c.x(toNS)-x-0.5)), Height: tenth(chartHeight - y), Class: class, Tip: tip})
}

// line adds a line; with steps a value stays until the next.
func (c *chart) line(class, name string, times []int64, values []float64, steps bool) {
	var points strings.Builder
	for i, at := range times {
		if steps && i > 0 {
			fmt.Fprintf(&points, "%g,%g ", tenth(c.x(at)), tenth(c.y(values[i-1])))
		}
		fmt.Fprintf(&points, "%g,%g ", tenth(c.x(at)), tenth(c.y(values[i])))
	}
	c.Lines = append(c.Lines, chartLine{class, name, strings.TrimSpace(points.String())})
}

func tenth(v float64) float64 { return math.Round(v*10) / 10 }

// courseChart draws what was allocated in each slice of the trace.
func courseChart(rec *recording.Recording) *chart {
	a := rec.Allocation
	if a == nil || len(a.Series) < 2 {
		return nil
	}
	rates, largest, from := make([]float64, len(a.Series)), 0.0, int64(0)
	for i, point := range a.Series {
		if seconds := float64(point.TimeNS-from) / 1e9 * point.Coverage; seconds > 0 {
			rates[i] = float64(point.AllocBytes) / seconds
		}
		largest = max(largest, rates[i])
		from = point.TimeNS
	}
	c := newChart("Bytes allocated a second", max(rec.Session.DurationNS, from), largest, true)
	from = 0
	for i, point := range a.Series {
		c.bar("a", from, point.TimeNS, rates[i], fmt.Sprintf("%s: %s/s in %s blocks", durationText(point.TimeNS), sizeText(rates[i]), countText(point.Allocs)))
		from = point.TimeNS
	}
	return c
}

// arenaChart draws the number of arenas over the trace, a step for each creation.
func arenaChart(rec *recording.Recording) *chart {
	a := rec.Arenas
	if a == nil || len(a.Created) == 0 || rec.Heap == nil {
		return nil
	}
	count := float64(max(0, len(rec.Heap.Arenas)-len(a.Created)))
	if rec.HeapBefore != nil {
		count = float64(len(rec.HeapBefore.Arenas))
	}
	times, values := []int64{0}, []float64{count}
	for _, event := range a.Created {
		count++
		times, values = append(times, event.TimeNS), append(values, count)
	}
	times, values = append(times, rec.Session.DurationNS), append(values, count)
	c := newChart("Arenas", rec.Session.DurationNS, max(count, 2), false)
	c.line("a", "arenas", times, values, true)
	if len(a.Trims) > 0 {
		c.Note = "orange: malloc_trim"
	}
	for _, trim := range a.Trims {
		c.bar("b", trim.TimeNS, trim.TimeNS+trim.DurationNS, c.top, fmt.Sprintf("malloc_trim at %s by %s, %s: resident %s",
			durationText(trim.TimeNS), printable(trim.Thread), durationText(trim.DurationNS), change(trim.RSSBeforeBytes, trim.RSSAfterBytes)))
	}
	return c
}

// roundCharts draws the rounds of the threads that allocate most in them, a chart for each.
func roundCharts(rec *recording.Recording) []*chart {
	if rec.Rounds == nil {
		return nil
	}
	const most = 3
	var all []*chart
	for _, n := range rec.Rounds.Groups() {
		if c := roundChart(&n, rec); c != nil && len(all) < most {
			all = append(all, c)
		}
	}
	return all
}

// roundChart draws the rounds of threads of one name over the trace: of each slice of time
// the largest and the mean round.
func roundChart(n *recording.RoundGroup, rec *recording.Recording) *chart {
	type slice struct {
		count        int
		sum, largest float64
	}
	end, drawn, largest := max(1, rec.Session.DurationNS), 0, 0.0
	slices := make([]slice, chartColumns)
	for _, round := range rec.Rounds.Series {
		if !n.TIDs[round.TID] {
			continue
		}
		at := &slices[min(chartColumns-1, max(0, int(float64(round.StartNS)/float64(end)*chartColumns)))]
		at.count++
		at.sum += float64(round.AllocBytes)
		at.largest = max(at.largest, float64(round.AllocBytes))
		largest = max(largest, at.largest)
		drawn++
	}
	if drawn < 2 || largest == 0 {
		return nil
	}
	c := newChart(roundTitle(n)+"bytes allocated in a round, the largest and the mean of each slice of time", end, largest, true)
	for i, s := range slices {
		if s.count == 0 {
			continue
		}
		from, to := end/chartColumns*int64(i), end/chartColumns*int64(i+1)
		tip := fmt.Sprintf("%s: %s, mean %s, largest %s", durationText(from), plural(uint64(s.count), "round"), sizeText(s.sum/float64(s.count)), sizeText(s.largest))
		c.bar("c", from, to, s.largest, tip)
		c.bar("a", from, to, s.sum/float64(s.count), tip)
	}
	if n.Rounds > uint64(drawn) {
		c.Note = fmt.Sprintf("%s of %s rounds, evenly thinned", countText(uint64(drawn)), countText(n.Rounds))
	}
	return c
}
