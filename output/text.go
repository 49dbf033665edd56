package output

import (
	"fmt"
	"io"

	"memtrace/tracer/recording"
)

// textSection writes one part of the report; it writes nothing when the recording has
// nothing for it.
type textSection func(*page, *recording.Recording)

// textSections lists the parts of the report in reading order: the judgements first, then
// what they rest on.
func textSections() []textSection {
	return []textSection{
		textHeader,
		textFindings,
		textSummary,
		textProcesses,
		textThreads,
		textSizes,
		textRounds,
		textSites,
		textLocks,
		textScheduling,
		textArenas,
		textMmap,
		textHeap,
	}
}

// Text writes the report that people read, at most 100 columns wide.
func Text(w io.Writer, rec *recording.Recording, o Options) error {
	p := newPage(w, o)
	for _, section := range textSections() {
		section(p, rec)
	}
	return p.w.Flush()
}

// textHeader says what was traced, for how long, and how far the numbers can be trusted.
func textHeader(p *page, rec *recording.Recording) {
	t, s := rec.Target, rec.Session
	p.line("%s", p.bold(fmt.Sprintf("%s (pid %d)", clip(printable(t.Command), 60), t.PID)))
	p.line("%s, %s, traced for %s on Linux %s", threadsText(rec),
		allocatorText(t.Allocator), durationText(s.DurationNS), s.Kernel)
	if t.Container != "" {
		p.line("container %s", clip(printable(t.Container), 64))
	}
	if t.Exited {
		p.line("the process ended while it was traced")
	}
	p.line("cost to the target: %s", overheadText(rec))
	p.line("%s", lossText(rec.Losses))
	for _, note := range rec.Notes {
		p.paragraph("note: ", note)
	}
}

// threadsText counts the threads: those of the start, and those that came to allocate.
func threadsText(rec *recording.Recording) string {
	text := plural(uint64(rec.Target.Threads), "thread")
	if a := rec.Allocation; a != nil && len(a.Threads) > rec.Target.Threads {
		text += fmt.Sprintf(" at the start, %s that allocated", countText(uint64(len(a.Threads))))
	}
	return text
}

func allocatorText(a recording.Allocator) string {
	if a.Name == "" {
		return "no known allocator"
	}
	if a.Version == "" {
		return a.Name
	}
	return a.Name + " " + a.Version
}

// overheadText sums up what the trace cost.
func overheadText(rec *recording.Recording) string {
	o := rec.Overhead
	text := fmt.Sprintf("about %s of its CPU time (%s probe hits)", percentText(o.TargetSlowdown), countText(o.ProbeHits))
	if o.DutyCycle > 0 && o.DutyCycle < 1 {
		text += fmt.Sprintf("; probes were in for %s of the time, figures are scaled", percentText(o.DutyCycle))
	}
	return text
}

// lossText says what is missing, or that nothing is.
func lossText(l recording.Losses) string {
	text := "nothing lost"
	lost := []struct {
		count uint64
		what  string
	}{
		{l.StacksLost, "stack"}, {l.SitesLost, "site update"}, {l.ThreadsLost, "thread update"}, {l.EventsLost, "event"},
		{l.LocksLost, "lock update"}, {l.BlocksLost, "followed block"}, {l.MissedHits, "probe hit"}, {l.FailedReads, "memory read"},
	}
	first := true
	for _, loss := range lost {
		if loss.count == 0 {
			continue
		}
		if first {
			text, first = "lost: ", false
		} else {
			text += ", "
		}
		text += plural(loss.count, loss.what)
	}
	if l.StacksTaken > 0 {
		text += fmt.Sprintf("; %s of %s complete", percentText(l.StacksCompleteFraction), plural(l.StacksTaken, "stack"))
	}
	return text
}

// textFindings writes the judgements, the worst first.
func textFindings(p *page, rec *recording.Recording) {
	if len(rec.Findings) == 0 {
		return
	}
	p.heading("Findings")
	for i, f := range rec.Findings {
		if i > 0 {
			p.line("")
		}
		p.line("%s %s", p.severity(f.Severity), p.bold(f.Kind))
		p.paragraph("  ", f.Summary)
		if f.Next != "" {
			p.paragraph("  next: ", f.Next)
		}
	}
}
