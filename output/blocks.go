package output

import (
	"strings"

	"memtrace/tracer/recording"
)

// blocks is a part of the text report before it becomes text. The HTML page is made of the
// same parts, so that its numbers are those of the text report.
type blocks struct{ all []block }

// block is a heading, a paragraph, a table, or lines that are set as they are.
type block struct {
	Heading string
	Lead    string
	Text    string
	Lines   []string
	Columns []blockColumn
	Rows    [][]blockCell
}

type blockColumn struct {
	Title string
	Right bool
}

type blockCell struct {
	Text  string
	Right bool
}

// blocksOf takes the parts of some sections of the text report.
func blocksOf(rec *recording.Recording, top int, sections ...textSection) []block {
	taken := &blocks{}
	p := &page{top: top, blocks: taken}
	for _, section := range sections {
		section(p, rec)
	}
	return taken.all
}

func (b *blocks) heading(text string) { b.all = append(b.all, block{Heading: printable(text)}) }

func (b *blocks) paragraph(lead, text string) {
	b.all = append(b.all, block{Lead: printable(strings.TrimSpace(lead)), Text: printable(strings.TrimSpace(text))})
}

// line adds to the lines before it; an empty line ends them.
func (b *blocks) line(text string) {
	text = printable(strings.TrimRight(text, " "))
	last := len(b.all) - 1
	switch {
	case text == "":
		b.all = append(b.all, block{})
	case last >= 0 && b.all[last].Lines != nil:
		b.all[last].Lines = append(b.all[last].Lines, text)
	default:
		b.all = append(b.all, block{Lines: []string{text}})
	}
}

func (b *blocks) table(columnsOf []column, rows [][]string) {
	table := block{}
	for _, c := range columnsOf {
		table.Columns = append(table.Columns, blockColumn{c.title, c.right})
	}
	for _, row := range rows {
		cells := make([]blockCell, len(row))
		for i, text := range row {
			cells[i] = blockCell{printable(text), columnsOf[i].right}
		}
		table.Rows = append(table.Rows, cells)
	}
	b.all = append(b.all, table)
}
