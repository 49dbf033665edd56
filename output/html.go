package output

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"

	"memtrace/tracer/recording"
)

// The page's template, style and script. They are plain files of this project; the page
// needs no network.
//
//go:embed html
var htmlFiles embed.FS

// htmlPage is what the template of the page shows.
type htmlPage struct {
	Title      string
	Header     []string
	Findings   []recording.Finding
	Ledger     *htmlLedger
	Sections   []htmlSection
	ByMemtrace string

	Style               template.CSS
	Script, FlameScript template.JS
}

// HasSites tells whether the page has a list of sites to search.
func (p htmlPage) HasSites() bool {
	return slices.ContainsFunc(p.Sections, func(s htmlSection) bool { return s.Sites != nil })
}

// HasFlame tells whether the page has a flame graph.
func (p htmlPage) HasFlame() bool {
	return slices.ContainsFunc(p.Sections, func(s htmlSection) bool { return s.Flame != nil })
}

// htmlSection is a part of the page; those without content are left out.
type htmlSection struct {
	ID, Title string
	Charts    []*chart
	Blocks    []block
	Flame     *htmlFlames
	Sites     *htmlSites
	Locks     []htmlLock
	Chains    []htmlChain
}

func (s htmlSection) empty() bool {
	return len(s.Charts) == 0 && len(s.Blocks) == 0 && s.Flame == nil && s.Sites == nil && len(s.Locks) == 0
}

// HTML writes the whole recording as one page that works from a file: the judgements first,
// then what they rest on. It shows the same figures as the text report.
func HTML(w io.Writer, rec *recording.Recording, o Options) error {
	return writePage(w, htmlPage{
		Title:      fmt.Sprintf("%s (pid %d)", clip(printable(rec.Target.Command), 80), rec.Target.PID),
		Header:     headerLines(rec),
		Findings:   printableFindings(rec.Findings),
		Ledger:     newLedger(rec.Heap),
		Sections:   htmlSections(rec, o),
		ByMemtrace: "memtrace " + printable(rec.Session.MemtraceVersion),
	})
}

// writePage fills the template, with the style and the scripts inside.
func writePage(w io.Writer, view htmlPage) error {
	page, err := template.New("page.html").Funcs(template.FuncMap{
		"severity": func(s recording.Severity) int { return s.Rank() },
	}).ParseFS(htmlFiles, "html/*.html")
	if err != nil {
		return fmt.Errorf("read the page's template: %w", err)
	}
	parts := map[string]string{"html/style.css": "", "html/page.js": "", "html/flame.js": ""}
	for name := range parts {
		content, err := htmlFiles.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read a part of the page: %w", err)
		}
		parts[name] = string(content)
	}
	view.Style, view.Script, view.FlameScript = template.CSS(parts["html/style.css"]), template.JS(parts["html/page.js"]), template.JS(parts["html/flame.js"])
	if err := page.Execute(w, view); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// headerLines is the text report's header without its first line, the page's title.
func headerLines(rec *recording.Recording) []string {
	var lines []string
	for _, b := range blocksOf(rec, DefaultTop, textHeader) {
		lines = append(lines, b.Lines...)
		if b.Text != "" {
			lines = append(lines, b.Lead+" "+b.Text)
		}
	}
	return lines[min(1, len(lines)):]
}

// printableFindings makes findings safe to show: they quote names of the target.
func printableFindings(findings []recording.Finding) []recording.Finding {
	var safe []recording.Finding
	for _, f := range findings {
		f.Kind, f.Severity, f.Summary, f.Next = printable(f.Kind), recording.Severity(printable(string(f.Severity))), printable(f.Summary), printable(f.Next)
		evidence := map[string]float64{}
		for name, value := range f.Evidence {
			evidence[printable(name)] = value
		}
		f.Evidence = evidence
		safe = append(safe, f)
	}
	return safe
}

// htmlSections lists the parts of the page in reading order. A section of the text report
// that no part shows is added at the end, so that the page lacks nothing.
func htmlSections(rec *recording.Recording, o Options) []htmlSection {
	top := o.top()
	text := func(sections ...textSection) []block { return withoutFirstHeading(blocksOf(rec, top, sections...)) }
	all := []htmlSection{
		{ID: "allocation", Title: "Allocation", Charts: charts(courseChart(rec)), Blocks: text(textSummary)},
		{ID: "heap", Title: "Heap at the end of the trace", Blocks: text(heapWithoutLedger)},
		{ID: "arenas", Title: "Arenas over time", Charts: charts(arenaChart(rec)), Blocks: blocksOf(rec, top, textArenas)},
		{ID: "mmap", Title: "Memory outside malloc", Blocks: blocksOf(rec, top, textMmap)},
		{ID: "rounds", Title: "Rounds", Charts: roundCharts(rec), Blocks: blocksOf(rec, top, textRounds)},
		{ID: "flames", Title: "Flame graph", Flame: newFlames(rec, o.measure())},
		{ID: "sites", Title: "Sites, by bytes allocated", Sites: newSites(rec)},
		{ID: "locks", Title: "Locks", Blocks: untilTable(blocksOf(rec, top, textLocks)), Locks: newLocks(rec, top), Chains: newChains(rec, top)},
		{ID: "threads", Title: "Threads, by bytes allocated", Blocks: text(textThreads)},
		{ID: "processes", Title: "Processes", Blocks: text(textProcesses)},
		{ID: "scheduling", Title: "Scheduling", Blocks: blocksOf(rec, top, textScheduling)},
		{ID: "sizes", Title: "Sizes", Blocks: text(textSizes)},
	}
	all = append(all, otherSections(rec, top)...)
	all = append(all, htmlSection{ID: "method", Title: "How the numbers were made", Blocks: methodBlocks(rec)})
	var shown []htmlSection
	for _, s := range all {
		if !s.empty() {
			shown = append(shown, s)
		}
	}
	return shown
}

func charts(all ...*chart) []*chart {
	var drawn []*chart
	for _, c := range all {
		if c != nil {
			drawn = append(drawn, c)
		}
	}
	return drawn
}

// withoutFirstHeading drops the heading that the page's own section repeats.
func withoutFirstHeading(all []block) []block {
	if len(all) > 0 && all[0].Heading != "" {
		return all[1:]
	}
	return all
}

// untilTable keeps what comes up to the first table; the page shows the rest otherwise.
func untilTable(all []block) []block {
	for i, b := range all {
		if b.Rows != nil {
			return all[:i+1]
		}
	}
	return all
}
