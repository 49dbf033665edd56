package output

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"memtrace/tracer/recording"
)

// methodBlocks tells how the numbers were made, what they cost and what is missing.
func methodBlocks(rec *recording.Recording) []block {
	b := &blocks{}
	s, o, l := rec.Session, rec.Overhead, rec.Losses
	rows := [][]string{
		{"probes", printable(strings.Join(s.Probes, ", "))},
		{"stacks", samplingText(rec)},
		{"rounds", printable(s.Round)},
		{"started", s.Started.UTC().Format("2006-01-02 15:04:05 UTC")},
		{"machine", printable("Linux " + s.Kernel + ", " + s.Arch)},
		{"cost to the target", overheadText(rec)},
		{"attaching took", durationText(o.AttachNS)},
		{"memtrace's own", fmt.Sprintf("%s of CPU time, %s resident", durationText(o.OwnCPUNS), bytesText(o.OwnRSSBytes))},
	}
	for _, family := range slices.Sorted(maps.Keys(o.Coverage)) {
		rows = append(rows, []string{"probes in: " + printable(family), percentText(o.Coverage[family]) + " of the time"})
	}
	b.table([]column{{"", false}, {"", false}}, rows)
	b.heading("Losses")
	b.table([]column{{"what", false}, {"how many", true}}, [][]string{
		{"stacks lost", countText(l.StacksLost)}, {"site updates lost", countText(l.SitesLost)}, {"thread updates lost", countText(l.ThreadsLost)},
		{"events lost", countText(l.EventsLost)}, {"lock updates lost", countText(l.LocksLost)}, {"followed blocks lost", countText(l.BlocksLost)},
		{"probe hits missed", countText(l.MissedHits)}, {"reads of memory that failed", countText(l.FailedReads)},
		{"stacks cut short", countText(l.StacksTruncated)}, {"stacks with guessed frames", countText(l.StacksGuessed)},
		{"stacks taken", countText(l.StacksTaken)}, {"share of complete stacks", percentText(l.StacksCompleteFraction)},
	})
	b.heading("What the words mean")
	b.paragraph("new blocks", "calls that made a block: malloc, calloc, the aligned family, realloc of nothing. A call that the allocator makes to itself counts once.")
	b.paragraph("bytes", "as requested; released bytes are the usable size of the block.")
	b.paragraph("free and resident", "memory that the allocator holds free and that still takes up the machine's memory. Free memory that was never touched costs nothing.")
	b.paragraph("live", "chunks in use and in the threads' caches, as glibc's mallinfo2 counts them.")
	b.paragraph("waits", "threads that slept in the kernel. Locks that are taken without waiting never enter it and are not counted.")
	return b.all
}

// samplingText says which calls had their stack taken.
func samplingText(rec *recording.Recording) string {
	a := rec.Allocation
	text := fmt.Sprintf("one every %s on average, weighted by the inverse of its chance; calls and bytes of threads and sizes are counted", bytesText(rec.Session.SampleBytes))
	if rec.Session.Exact {
		text = "of every call (--exact)"
	}
	if a != nil && a.Estimated {
		text += fmt.Sprintf("; totals are scaled by the time the probes were in, ± %s", percentText(a.RelativeError))
	}
	return text
}

// otherSections makes parts of the page of the text report's sections that no other part
// shows.
func otherSections(rec *recording.Recording, top int) []htmlSection {
	shown := map[string]bool{}
	for _, section := range []textSection{textHeader, textFindings, textSummary, textProcesses, textThreads, textSizes, textRounds, textSites, textLocks, textScheduling, textArenas, textMmap, textHeap} {
		shown[firstHeading(blocksOf(rec, top, section))] = true
	}
	var all []htmlSection
	for _, section := range textSections() {
		taken := blocksOf(rec, top, section)
		title := firstHeading(taken)
		if title == "" || shown[title] {
			continue
		}
		all = append(all, htmlSection{ID: fmt.Sprintf("more-%d", len(all)+1), Title: title, Blocks: withoutFirstHeading(taken)})
	}
	return all
}

func firstHeading(all []block) string {
	for _, b := range all {
		if b.Heading != "" {
			return b.Heading
		}
	}
	return ""
}
