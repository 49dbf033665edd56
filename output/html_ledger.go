package output

import (
	"memtrace/tracer/recording"
)

// htmlLedger is the resident memory as one bar.
type htmlLedger struct {
	Sentence, Total, Committed string
	Parts                      []htmlLedgerPart
}

// htmlLedgerPart is a segment of the bar and a row of its legend.
type htmlLedgerPart struct {
	Class, Name, Bytes, Share string
	Percent                   float64
}

// newLedger splits the resident memory as the text report does; nil where no heap was read.
func newLedger(h *recording.Heap) *htmlLedger {
	if h == nil || h.Ledger.RSSBytes == 0 {
		return nil
	}
	classes := []string{"live", "free", "mmapped", "anon", "stack", "file"}
	ledger := &htmlLedger{Sentence: heapSentence(h), Total: bytesText(h.Ledger.RSSBytes), Committed: heapCommitted(h.Ledger)}
	for i, part := range ledgerParts(h.Ledger) {
		of := share(part.bytes, h.Ledger.RSSBytes)
		ledger.Parts = append(ledger.Parts, htmlLedgerPart{classes[i], part.name, bytesText(part.bytes), percentText(of), tenth(min(1, of) * 100)})
	}
	return ledger
}

// heapWithoutLedger is the text report's heap without the parts that the ledger shows.
func heapWithoutLedger(p *page, rec *recording.Recording) {
	if rec.Heap == nil {
		return
	}
	p.paragraph("", heapTrust(rec.Heap))
	heapSince(p, rec)
	heapArenas(p, rec.Heap)
	heapRest(p, rec.Heap)
}
