package output

import (
	"memtrace/tracer/recording"
)

// Bounds of the page, which must open at once: the flame graph holds all sites, the list
// only the largest; names of templates can run to thousands of characters.
const (
	mostPageSites = 200
	longestOnPage = 300
	mostLockSites = 5
)

// htmlSites is the list of sites.
type htmlSites struct {
	Total, Left string
	Basis       string
	Rows        []htmlSite
}

type htmlSite struct {
	Rank                              int
	Bytes, Share, Blocks, Entry, Each string
	Percent                           float64
	Leaf, Fate                        string
	Frames                            []htmlFrame
}

// htmlFrame is a line of a stack.
type htmlFrame struct {
	Name, Place string
	Inlined     bool
}

// newSites lists the largest sites, with the figures of the text report.
func newSites(rec *recording.Recording) *htmlSites {
	a := rec.Allocation
	if a == nil || len(a.Sites) == 0 {
		return nil
	}
	total := uint64(len(a.Sites) + a.SitesDropped)
	list := &htmlSites{Total: plural(total, "site"), Basis: sitesBasis(rec)}
	for i := range a.Sites {
		if i == mostPageSites {
			break
		}
		s := &a.Sites[i]
		part := share(s.AllocBytes, a.Totals.AllocBytes)
		row := htmlSite{Rank: i + 1, Bytes: bytesText(s.AllocBytes), Share: percentText(part), Percent: tenth(min(1, part) * 100),
			Blocks: countText(s.Allocs), Entry: clip(printable(s.Entry), longestOnPage), Fate: printable(siteFate(s, a)), Frames: htmlFrames(s.Stack), Leaf: s.Entry}
		if s.Allocs > 0 {
			row.Each = sizeText(float64(s.AllocBytes) / float64(s.Allocs))
		}
		if len(row.Frames) > 0 {
			row.Leaf = row.Frames[0].Name
		}
		list.Rows = append(list.Rows, row)
	}
	if left := total - uint64(len(list.Rows)); left > 0 {
		list.Left = plural(left, "site") + " with fewer bytes are not listed"
	}
	return list
}

func htmlFrames(stack recording.Stack) []htmlFrame {
	var frames []htmlFrame
	for _, f := range stack {
		frames = append(frames, htmlFrame{clip(printable(frameName(f)), longestOnPage), clip(printable(framePlace(f)), longestOnPage), f.Inlined})
	}
	return frames
}
