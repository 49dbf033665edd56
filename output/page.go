package output

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"memtrace/tracer/recording"
)

// pageWidth is the widest line of the text report, in columns.
const pageWidth = 100

// page is the text report as it is written. Write errors surface when it is flushed.
type page struct {
	w      *bufio.Writer
	top    int
	colour bool
	plain  bool // ASCII only
	width  int  // where paragraphs are broken
	// blocks takes the report in parts instead of as text, for the HTML page, where it is set.
	blocks *blocks
}

// newPage starts a text report.
func newPage(w io.Writer, o Options) *page {
	const narrowest = 40
	p := &page{w: bufio.NewWriter(w), top: o.top(), colour: o.Colour, plain: o.Plain, width: pageWidth}
	if o.Width > 0 {
		p.width = min(pageWidth, max(narrowest, o.Width))
	}
	return p
}

// text makes text of the report fit for the terminal's characters. It is done before widths
// are reckoned, because a substitute may be wider.
func (p *page) text(text string) string {
	if !p.plain {
		return text
	}
	return plainText(text)
}

func (p *page) line(format string, arguments ...any) {
	if p.blocks != nil {
		p.blocks.line(fmt.Sprintf(format, arguments...))
		return
	}
	text := p.text(fmt.Sprintf(format, arguments...))
	for _, line := range strings.Split(text, "\n") {
		p.w.WriteString(safeLine(line, p.colour))
		p.w.WriteByte('\n')
	}
}

// heading starts a section.
func (p *page) heading(format string, arguments ...any) {
	if p.blocks != nil {
		p.blocks.heading(fmt.Sprintf(format, arguments...))
		return
	}
	p.line("\n%s", p.bold(fmt.Sprintf(format, arguments...)))
}

// paragraph wraps text to the page; the first line begins with lead, the rest are indented
// as far.
func (p *page) paragraph(lead, text string) {
	if p.blocks != nil {
		p.blocks.paragraph(lead, text)
		return
	}
	p.paragraphAfter(lead, columns(lead), text)
}

// paragraphAfter is paragraph with a lead that takes another number of columns than it has
// characters, because it holds colours.
func (p *page) paragraphAfter(lead string, width int, text string) {
	indent := strings.Repeat(" ", width)
	line := lead
	hidden := columns(lead) - width
	empty := true
	for _, word := range strings.Fields(p.text(text)) {
		if !empty && columns(line)-hidden+1+columns(word) > p.width {
			p.line("%s", line)
			line, empty, hidden = indent, true, 0
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	p.line("%s", line)
}

func (p *page) bold(text string) string { return p.escape("1", text) }

// severity writes a finding's weight as a marker, coloured on a terminal.
func (p *page) severity(s recording.Severity) string {
	marker := fmt.Sprintf("%-6s", s)
	switch s {
	case recording.High:
		return p.escape("1;31", marker)
	case recording.Medium:
		return p.escape("33", marker)
	}
	return p.escape("36", marker)
}

// escape wraps text in a terminal's colour code where colour is allowed.
func (p *page) escape(code, text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// column is one column of a table; numbers stand to the right.
type column struct {
	title string
	right bool
}

// table writes rows under titles, two spaces between columns, the last column cut at the
// page's edge.
func (p *page) table(columnsOf []column, rows [][]string) {
	if p.blocks != nil {
		p.blocks.table(columnsOf, rows)
		return
	}
	rows = p.cells(rows)
	widths := make([]int, len(columnsOf))
	titles := make([]string, len(columnsOf))
	for i, c := range columnsOf {
		titles[i] = c.title
		widths[i] = columns(c.title)
		for _, row := range rows {
			widths[i] = max(widths[i], columns(row[i]))
		}
	}
	for _, row := range append([][]string{titles}, rows...) {
		var b strings.Builder
		for i, cell := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			padding := strings.Repeat(" ", widths[i]-columns(cell))
			if columnsOf[i].right {
				b.WriteString(padding + cell)
			} else {
				b.WriteString(cell + padding)
			}
		}
		p.line("  %s", clip(strings.TrimRight(b.String(), " "), pageWidth-2))
	}
}

// cells makes the cells of a table fit for the terminal's characters.
func (p *page) cells(rows [][]string) [][]string {
	if !p.plain {
		return rows
	}
	plain := make([][]string, len(rows))
	for i, row := range rows {
		for _, cell := range row {
			plain[i] = append(plain[i], plainText(cell))
		}
	}
	return plain
}

// more says how many rows a table left out.
func (p *page) more(total int, what string) {
	if total > p.top {
		p.line("  … and %s more (--top)", plural(uint64(total-p.top), what))
	}
}

// columns is the number of columns that text takes.
func columns(text string) int { return utf8.RuneCountInString(text) }

// clip cuts text to at most width columns and marks the cut.
func clip(text string, width int) string {
	if columns(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// plural writes a number of things: "1 thread", "3 threads".
func plural(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return countText(n) + " " + thing + "s"
}
