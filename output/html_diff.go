package output

import (
	"fmt"
	"io"

	"memtrace/tracer/recording"
)

// DiffHTML writes a comparison as a page: the verdicts, the table, the differential flame
// graph and the sites, with the figures of the text report.
func DiffHTML(w io.Writer, c *recording.Comparison, o Options) error {
	view := htmlPage{
		Title:      "Before and after: " + clip(printable(c.After.Command), 80),
		Header:     []string{"before: " + sideText(c.Before), "after: " + sideText(c.After)},
		Findings:   diffFindings(c),
		ByMemtrace: "memtrace",
	}
	part := func(write func(*page)) []block {
		taken := &blocks{}
		write(&page{top: o.top(), blocks: taken})
		return withoutFirstHeading(taken.all)
	}
	view.Sections = append(view.Sections, htmlSection{ID: "table", Title: "Before and after", Blocks: part(func(p *page) { p.diffTable(c) })})
	if flames := newDiffFlames(c); flames != nil {
		view.Sections = append(view.Sections, htmlSection{ID: "flames", Title: "Differential flame graph", Flame: flames})
	}
	if len(c.Sites) > 0 {
		title := fmt.Sprintf("Sites that changed (%s did not)", plural(uint64(c.SitesUnchanged), "site"))
		view.Sections = append(view.Sections, htmlSection{ID: "sites", Title: title, Blocks: part(func(p *page) { p.diffSites(c) })})
	}
	return writePage(w, view)
}

// diffFindings shows the verdicts and the warnings as the page's findings.
func diffFindings(c *recording.Comparison) []recording.Finding {
	all := []recording.Finding{{Kind: "verdict", Severity: recording.Info, Summary: printable(c.Summary)}}
	for _, warning := range c.Warnings {
		all = append(all, recording.Finding{Kind: "warning", Severity: recording.Medium, Summary: printable(warning)})
	}
	return all
}
