package output

import (
	"fmt"
	"sort"

	"memtrace/tracer/recording"
)

// textSummary writes what the process asked of its allocator, in all.
func textSummary(p *page, rec *recording.Recording) {
	a := rec.Allocation
	if a == nil {
		return
	}
	p.heading("Allocation")
	estimate := ""
	if a.Estimated {
		estimate = fmt.Sprintf("  (estimates, ± %s)", percentText(a.RelativeError))
	}
	rows := [][]string{
		{"new blocks", countText(a.Totals.Allocs), bytesText(a.Totals.AllocBytes), rateText(a.Rate.AllocsPerSecond), sizeText(a.Rate.AllocBytesPerSecond) + "/s"},
		{"resized", countText(a.Totals.Reallocs), bytesText(a.Totals.ReallocBytes), perSecond(a.Totals.Reallocs, rec), ""},
		{"released", countText(a.Totals.Frees), "", perSecond(a.Totals.Frees, rec), ""},
	}
	if a.FreeSizes {
		rows[2][2] = bytesText(a.Totals.FreeBytes)
	}
	if rec.Session.Exact {
		rows = append(rows, []string{"failed", countText(a.Totals.Failed), "", "", ""})
	}
	p.table([]column{{"", false}, {"calls", true}, {"bytes", true}, {"calls/s", true}, {"bytes/s", true}}, rows)
	if estimate != "" {
		p.line("%s", estimate)
	}
}

// perSecond is a total over the trace as a rate.
func perSecond(n uint64, rec *recording.Recording) string {
	seconds := rec.Session.Duration().Seconds()
	if seconds <= 0 {
		return ""
	}
	return rateText(float64(n) / seconds)
}

// textThreads writes who allocates. Threads of one name, as pools and short-lived threads
// have, share a row.
func textThreads(p *page, rec *recording.Recording) {
	a := rec.Allocation
	if a == nil || len(a.Threads) == 0 {
		return
	}
	p.heading("Threads, by bytes allocated")
	titles := []column{{"thread", false}, {"tid", true}, {"new blocks", true}, {"bytes", true}, {"share", true}, {"released", true}, {"resized", true}, {"remote frees", true}}
	var rows [][]string
	named := threadsByName(a.Threads)
	for i, t := range named {
		if i == p.top {
			break
		}
		tid := fmt.Sprint(t.TID)
		if t.count > 1 {
			tid = fmt.Sprintf("%d threads", t.count)
		}
		rows = append(rows, []string{clip(printable(t.Name), 16), tid, countText(t.Allocs), bytesText(t.AllocBytes),
			percentText(share(t.AllocBytes, a.Totals.AllocBytes)), countText(t.Frees), countText(t.Reallocs), countText(t.RemoteFrees)})
	}
	p.table(titles, rows)
	p.more(len(named), "thread name")
}

// namedThreads is the sum of the threads of one name.
type namedThreads struct {
	recording.AllocationThread
	count int
}

// threadsByName sums threads of the same name, most bytes first.
func threadsByName(threads []recording.AllocationThread) []namedThreads {
	index := map[string]int{}
	var named []namedThreads
	for _, t := range threads {
		at, known := index[t.Name]
		if !known {
			index[t.Name] = len(named)
			named = append(named, namedThreads{t, 1})
			continue
		}
		sum := &named[at]
		sum.count++
		sum.Allocs += t.Allocs
		sum.AllocBytes += t.AllocBytes
		sum.Frees += t.Frees
		sum.FreeBytes += t.FreeBytes
		sum.Reallocs += t.Reallocs
		sum.ReallocBytes += t.ReallocBytes
		sum.RemoteFrees += t.RemoteFrees
	}
	sort.SliceStable(named, func(i, j int) bool { return named[i].AllocBytes > named[j].AllocBytes })
	return named
}

// textSizes writes the sizes asked for.
func textSizes(p *page, rec *recording.Recording) {
	a := rec.Allocation
	if a == nil || len(a.Sizes) == 0 {
		return
	}
	p.heading("Sizes")
	var rows [][]string
	for _, c := range a.Sizes {
		rows = append(rows, []string{"≤ " + bytesText(c.UptoBytes), countText(c.Allocs), bytesText(c.AllocBytes),
			bar(share(c.Allocs, a.Totals.Allocs)), bar(share(c.AllocBytes, a.Totals.AllocBytes))})
	}
	p.table([]column{{"size", true}, {"new blocks", true}, {"bytes", true}, {"share of blocks", false}, {"share of bytes", false}}, rows)
}

// bar draws a fraction in twenty columns.
func bar(fraction float64) string {
	const width = 20
	filled := int(fraction*width + 0.5)
	text := ""
	for range min(filled, width) {
		text += "█"
	}
	if text == "" && fraction > 0 {
		text = "▏"
	}
	return text
}

// textSites writes the places that allocate, each with its stack.
func textSites(p *page, rec *recording.Recording) {
	a := rec.Allocation
	if a == nil || len(a.Sites) == 0 {
		return
	}
	p.heading("Sites, by bytes allocated%s", sitesBasis(rec))
	for i := range a.Sites {
		if i == p.top {
			break
		}
		p.site(i+1, &a.Sites[i], a)
	}
	p.more(len(a.Sites)+a.SitesDropped, "site")
}

// sitesBasis says what the figures of the sites rest on.
func sitesBasis(rec *recording.Recording) string {
	if rec.Session.Exact {
		return " (counts)"
	}
	return fmt.Sprintf(" (estimates: a stack every %s)", bytesText(rec.Session.SampleBytes))
}

// site writes one site: its figures on one line, what became of its blocks on the next,
// then the stack.
func (p *page) site(rank int, s *recording.Site, a *recording.Allocation) {
	p.line("")
	head := fmt.Sprintf("#%d  %s  %s  in %s of %s", rank, bytesText(s.AllocBytes),
		percentText(share(s.AllocBytes, a.Totals.AllocBytes)), plural(s.Allocs, "block"), s.Entry)
	if s.Allocs > 0 {
		head += fmt.Sprintf(", %s each", sizeText(float64(s.AllocBytes)/float64(s.Allocs)))
	}
	p.line("  %s", p.bold(clip(head, pageWidth-2)))
	if fate := siteFate(s, a); fate != "" {
		p.paragraph("      ", fate)
	}
	for _, f := range s.Stack {
		p.frame(f)
	}
}

// siteFate says in one line what became of a site's blocks, and in which rounds.
func siteFate(s *recording.Site, a *recording.Allocation) string {
	text := ""
	add := func(format string, arguments ...any) {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf(format, arguments...)
	}
	if a.Lifetimes && s.Sampled > 0 {
		add("%s live at the end", bytesText(s.LiveBytes))
		if s.LifetimeP50NS > 0 {
			add("half live less than %s", durationText(s.LifetimeP50NS))
		}
		if s.RemoteFreeFraction > 0 {
			add("%s freed by another thread", percentText(s.RemoteFreeFraction))
		}
	}
	if s.RoundsActive > 0 {
		add("%s a round, %s freed in it", sizeText(s.BytesPerRound), percentText(s.SameRoundFraction))
	}
	if len(s.Threads) > 0 {
		first := s.Threads[0]
		add("thread %s", clip(first.Name, 16))
		if more := len(s.Threads) - 1; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	return text
}

// frame writes one line of a stack: the function, and where it is.
func (p *page) frame(f recording.Frame) {
	const indent = 8
	name, place := printable(frameName(f)), printable(framePlace(f))
	if f.Inlined {
		name += " (inlined)"
	}
	room := pageWidth - indent
	if place == "" {
		p.line("%*s%s", indent, "", clip(name, room))
		return
	}
	place = clip(place, room/2)
	p.line("%*s%s  %s", indent, "", clip(name, room-2-columns(place)), place)
}
