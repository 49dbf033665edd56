package output

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"memtrace/tracer/recording"
)

// Bounds of the section: threads whose rounds are told in words, and their sites.
const (
	roundThreadsTold = 4
	roundSitesTold   = 3
	roundFramesTold  = 6
)

// textRounds writes what a round of work asks of the allocator, and where.
func textRounds(p *page, rec *recording.Recording) {
	r := rec.Rounds
	if r == nil {
		return
	}
	p.heading("Rounds: %s", roundsBasis(r))
	if r.Count == r.Incomplete {
		p.paragraph("  ", noRoundsText(r))
		return
	}
	named := r.Groups()
	for i := range named {
		if i == roundThreadsTold || i == p.top {
			break
		}
		p.roundsOf(&named[i], rec, i == 0)
	}
	p.roundTable(named, r)
}

// roundsBasis says what separates two rounds.
func roundsBasis(r *recording.Rounds) string {
	if r.PerThread {
		return "each thread's, from one idle wait to the next"
	}
	return "the whole process's, " + clip(printable(r.Spec), 60)
}

// noRoundsText says why there are none.
func noRoundsText(r *recording.Rounds) string {
	switch {
	case r.Incomplete > 0:
		return fmt.Sprintf("%s, but the allocation probes were out during each: give --max-overhead off, or trace for longer", plural(r.Incomplete, "round"))
	case r.PerThread:
		return "no thread returned twice from an idle wait (epoll_wait, poll, nanosleep, …); for workers that wait for each other give --round func:SYMBOL"
	}
	return "the boundary was not passed twice while the trace ran"
}

// roundsOf writes the rounds of the threads of one name in words, with a picture of the
// course, and, for the first, the sites.
func (p *page) roundsOf(n *recording.RoundGroup, rec *recording.Recording, sites bool) {
	text := fmt.Sprintf("a round every %s: ", durationText(int64(n.PeriodNS.P50)))
	if n.Count == n.Incomplete {
		p.line("")
		p.paragraph("  "+roundTitle(n), text+"none of them was seen as a whole")
		return
	}
	text += fmt.Sprintf("%s, %s", plural(uint64(math.Round(n.Allocs.P50)), "allocation"), sizeText(n.Bytes.P50))
	if rec.Allocation != nil && n.Total > 0 {
		if function, part := recording.Dominant(rec.Allocation.Sites, n.Weight); function != "" {
			text += fmt.Sprintf("; %s of it in %s", percentText(part), clip(printable(function), 60))
		}
	}
	p.line("")
	p.paragraph("  "+roundTitle(n), text)
	p.paragraph("      ", fmt.Sprintf("%s of CPU time a round at the median, %s at p99; bytes: p99 %s, max %s", durationText(int64(n.CPUNS.P50)),
		durationText(int64(n.CPUNS.P99)), sizeText(n.Bytes.P99), sizeText(n.Bytes.Max)))
	p.roundSeries(n, rec.Rounds.Series)
	if sites && rec.Allocation != nil {
		p.roundSites(n, rec.Allocation)
	}
}

// roundTitle names the threads; rounds of the process have no thread.
func roundTitle(n *recording.RoundGroup) string {
	if n.OfProcess() {
		return ""
	}
	title := clip(printable(n.Name), 16)
	if len(n.TIDs) > 1 {
		title += fmt.Sprintf(" (%d threads)", len(n.TIDs))
	}
	return title + ": "
}

// roundSeries draws the bytes of a thread's rounds in the order of time, the mean of each
// slice; nothing where all are alike.
func (p *page) roundSeries(n *recording.RoundGroup, series []recording.Round) {
	var rounds []recording.Round
	for _, round := range series {
		if round.TID == n.TID {
			rounds = append(rounds, round)
		}
	}
	if len(rounds) < 2 {
		return
	}
	values := make([]float64, min(seriesColumns, len(rounds)))
	low, high := math.Inf(1), math.Inf(-1)
	for i := range values {
		part := rounds[i*len(rounds)/len(values) : (i+1)*len(rounds)/len(values)]
		for _, round := range part {
			values[i] += float64(round.AllocBytes) / float64(len(part))
		}
		low, high = min(low, values[i]), max(high, values[i])
	}
	if low == high {
		if low == n.Bytes.Max { // the series is thinned: only then are the others alike too
			p.line("      %s in every round", sizeText(low))
		}
		return
	}
	p.line("      %s", bars(values))
	p.line("      bytes a round over time, from %s to %s", sizeText(low), sizeText(high))
}

// roundSites writes where the bytes of the threads' rounds come from.
func (p *page) roundSites(n *recording.RoundGroup, a *recording.Allocation) {
	var total uint64
	sites := []*recording.Site{}
	for i := range a.Sites {
		if bytes := n.Weight(&a.Sites[i]); bytes > 0 && a.Sites[i].RoundsActive > 0 {
			total += bytes
			sites = append(sites, &a.Sites[i])
		}
	}
	slices.SortStableFunc(sites, func(x, y *recording.Site) int { return cmp.Compare(n.Weight(y), n.Weight(x)) })
	for _, s := range sites[:min(len(sites), roundSitesTold)] {
		text := fmt.Sprintf("%s  %s in %s blocks a round", percentText(share(n.Weight(s), total)), sizeText(s.BytesPerRound), figures(s.AllocsPerRound))
		if a.Lifetimes {
			text += fmt.Sprintf(", %s freed in it", percentText(s.SameRoundFraction))
		}
		p.line("      %s", p.bold(clip(fmt.Sprintf("%s, by %s", text, s.Entry), pageWidth-6)))
		for _, frame := range s.Stack[:min(len(s.Stack), roundFramesTold)] {
			p.frame(frame)
		}
	}
}

// roundTable writes one row for each name of threads.
func (p *page) roundTable(named []recording.RoundGroup, r *recording.Rounds) {
	p.line("")
	titles := []column{{"thread", false}, {"rounds", true}, {"every", true}, {"allocs", true}, {"bytes", true}, {"p99", true}, {"CPU", true},
		{"timed out", true}, {"wrote", true}, {"waits in", false}}
	if !r.PerThread {
		titles[0].title = "process"
	}
	var rows [][]string
	for i, n := range named {
		if i == p.top {
			break
		}
		rows = append(rows, []string{clip(printable(n.Name), 16), countText(n.Rounds), durationText(int64(n.PeriodNS.P50)), countText(uint64(n.Allocs.P50)),
			sizeText(n.Bytes.P50), sizeText(n.Bytes.P99), durationText(int64(n.CPUNS.P50)),
			percentText(share(n.Timeouts, n.Count)), percentText(share(n.Writes, n.Count)), n.Wait})
	}
	p.table(titles, rows)
	p.more(len(named), "thread name")
	if r.Missed > 0 {
		p.line("  %s came too fast for percentiles and series; means and maxima hold all", plural(r.Missed, "round"))
	}
	if r.Incomplete > 0 {
		p.paragraph("  ", fmt.Sprintf("the allocation probes were out for a time in %s of %s: what was allocated is known of the others",
			countText(r.Incomplete), plural(r.Count, "round")))
	}
}
