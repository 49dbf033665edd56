package output

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"memtrace/tracer/recording"
)

// Heap writes what the allocator holds: the verdict first, then where the resident memory
// is, then the arenas; at most 100 columns wide.
func Heap(w io.Writer, h *recording.Heap, o Options) error {
	p := newPage(w, o)
	p.line("%s", p.bold(clip(heapSentence(h), pageWidth)))
	p.line("%s (pid %d), %s, %s", clip(printable(h.Context.Command), 60), h.Context.PID,
		plural(uint64(h.Context.Threads), "thread"), allocatorText(h.Allocator))
	heapBody(p, h)
	return p.w.Flush()
}

// textHeap writes the heap at the end of a trace, and how it moved since the start.
func textHeap(p *page, rec *recording.Recording) {
	if rec.Heap == nil {
		return
	}
	p.heading("Heap at the end of the trace")
	p.line("%s", p.bold(clip(heapSentence(rec.Heap), pageWidth)))
	heapBody(p, rec.Heap)
	heapSince(p, rec)
}

// heapSince writes how the heap moved since the start of the trace.
func heapSince(p *page, rec *recording.Recording) {
	before := rec.HeapBefore
	if before == nil {
		return
	}
	p.line("")
	p.paragraph("", "since the start: live "+change(before.LiveBytes(), rec.Heap.LiveBytes())+
		", free and resident "+change(before.Ledger.ArenaFreeResidentBytes, rec.Heap.Ledger.ArenaFreeResidentBytes)+
		", resident in all "+change(before.Ledger.RSSBytes, rec.Heap.Ledger.RSSBytes)+
		fmt.Sprintf(", arenas %d → %d", len(before.Arenas), len(rec.Heap.Arenas)))
}

// change writes two sizes and the way between them.
func change(before, after uint64) string {
	return bytesText(before) + " → " + bytesText(after)
}

func heapBody(p *page, h *recording.Heap) {
	p.paragraph("", heapTrust(h))
	heapLedger(p, h)
	heapArenas(p, h)
	heapRest(p, h)
}

// heapSentence is the whole answer in one line.
func heapSentence(h *recording.Heap) string {
	text := fmt.Sprintf("%s live, %s free but resident in %s",
		bytesText(h.LiveBytes()), bytesText(h.Ledger.ArenaFreeResidentBytes), plural(uint64(len(h.Arenas)), "arena"))
	if h.TrimForecastBytes == 0 {
		return text + "; malloc_trim would return nothing"
	}
	return text + "; malloc_trim would return " + bytesText(h.TrimForecastBytes)
}

// heapTrust says how the figures were had and whether they hang together.
func heapTrust(h *recording.Heap) string {
	text := "read in " + durationText(h.WalkNS) + " while the process ran"
	if h.Frozen {
		text = "read while the process stood still for " + durationText(h.FrozenNS)
	}
	if h.Consistent {
		return text + ": consistent"
	}
	if h.Frozen {
		return text + ": not consistent, the figures are approximate"
	}
	return text + ": not consistent, the figures are approximate (--freeze stops it for the walk)"
}

// ledgerPart is one part of the resident memory and the sign that draws it.
type ledgerPart struct {
	sign, name string
	bytes      uint64
}

func ledgerParts(l recording.Ledger) []ledgerPart {
	return []ledgerPart{
		{"█", "live in arenas", l.ArenaLiveResidentBytes},
		{"▒", "free in arenas", l.ArenaFreeResidentBytes},
		{"▓", "mmapped chunks", l.MmappedChunkBytes},
		{"=", "other anonymous memory", l.OtherAnonBytes},
		{"-", "stacks", l.StackBytes},
		{"·", "files", l.FileBytes},
	}
}

// heapLedger draws the resident memory as one bar, and lists its parts.
func heapLedger(p *page, h *recording.Heap) {
	const width = 80
	l := h.Ledger
	p.heading("Resident memory: %s", bytesText(l.RSSBytes))
	var drawn strings.Builder
	var sum uint64
	var rows [][]string
	for _, part := range ledgerParts(l) {
		sum += part.bytes
		end := int(share(sum, l.RSSBytes)*width + 0.5)
		drawn.WriteString(strings.Repeat(part.sign, max(0, end-columns(drawn.String()))))
		rows = append(rows, []string{part.sign + " " + part.name, bytesText(part.bytes), percentText(share(part.bytes, l.RSSBytes))})
	}
	p.line("  %s", drawn.String())
	p.table([]column{{"part", false}, {"bytes", true}, {"share", true}}, rows)
	p.line("  %s", heapCommitted(l))
}

// heapCommitted says what of the memory counts against the machine.
func heapCommitted(l recording.Ledger) string {
	text := fmt.Sprintf("proportional share %s, committed %s", bytesText(l.PSSBytes), bytesText(l.CommittedBytes))
	if l.SwapBytes > 0 {
		text += fmt.Sprintf(", of which %s in swap", bytesText(l.SwapBytes))
	}
	return text
}

// heapArenas lists the arenas, those that hold most free memory first. Resident, in its top
// and trimmable are all of the free bytes.
func heapArenas(p *page, h *recording.Heap) {
	arenas := slices.Clone(h.Arenas)
	slices.SortStableFunc(arenas, func(a, b recording.Arena) int {
		switch {
		case a.FreeResidentBytes > b.FreeResidentBytes:
			return -1
		case a.FreeResidentBytes < b.FreeResidentBytes:
			return 1
		}
		return 0
	})
	p.heading("Arenas: %d of at most %d", len(arenas), h.Limits.ArenaLimit)
	var rows [][]string
	for i, a := range arenas {
		if i == p.top {
			break
		}
		rows = append(rows, arenaRow(a))
	}
	p.table([]column{{"arena", false}, {"threads", true}, {"heaps", true}, {"live", true}, {"free", true},
		{"resident", true}, {"in its top", true}, {"trimmable", true}, {"chunks", true}}, rows)
	p.more(len(arenas), "arena")
}

func arenaRow(a recording.Arena) []string {
	name := a.Address.String()
	if a.Main {
		name = "main"
	}
	return []string{name, fmt.Sprint(a.AttachedThreads), fmt.Sprint(a.Heaps), bytesText(a.LiveBytes), bytesText(a.FreeBytes),
		bytesText(a.FreeResidentBytes), bytesText(a.TopResidentBytes), bytesText(a.TrimmableBytes), countText(a.FreeChunks)}
}

// heapRest tells the caches, the mmapped chunks, the limits and the notes.
func heapRest(p *page, h *recording.Heap) {
	p.line("")
	m, l := h.MallInfo, h.Limits
	if h.TCache.Threads > 0 {
		p.line("thread caches   %s in %s, counted as live", plural(h.TCache.Chunks, "chunk")+" of "+bytesText(h.TCache.Bytes), plural(uint64(h.TCache.Threads), "cache"))
	}
	p.line("mmapped chunks  %s, %s", countText(m.Hblks), bytesText(m.Hblkhd))
	dynamic := "fixed"
	if l.MmapThresholdDynamic {
		dynamic = "rises when such a block is freed"
	}
	p.line("thresholds      mmap from %s (%s), trim above %s", bytesText(l.MmapThresholdBytes), dynamic, bytesText(l.TrimThresholdBytes))
	p.paragraph("mallinfo2       ", fmt.Sprintf("arena %d, ordblks %d, smblks %d, hblks %d, hblkhd %d, usmblks %d, fsmblks %d, uordblks %d, fordblks %d, keepcost %d",
		m.Arena, m.Ordblks, m.Smblks, m.Hblks, m.Hblkhd, m.Usmblks, m.Fsmblks, m.Uordblks, m.Fordblks, m.Keepcost))
	p.line("layout          %s", clip(printable(h.Layout), pageWidth-16))
	for _, note := range h.Notes {
		p.paragraph("note: ", printable(note))
	}
}
