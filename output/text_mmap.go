package output

import (
	"fmt"
	"strings"

	"memtrace/tracer/recording"
)

// textMmap writes what was mapped outside malloc, and by whom.
func textMmap(p *page, rec *recording.Recording) {
	m := rec.Mmap
	if m == nil || len(m.Sites) == 0 && m.Totals.BrkBytes == 0 && m.Totals.DiscardedBytes == 0 {
		return
	}
	t := m.Totals
	p.heading("Memory mapped outside malloc")
	text := fmt.Sprintf("%s in %s, %s unmapped", bytesText(t.MappedBytes), plural(t.Maps, "call"), bytesText(t.UnmappedBytes))
	if t.BrkBytes != 0 {
		text += fmt.Sprintf(", the program break moved by %s", signedBytes(t.BrkBytes))
	}
	if t.DiscardedBytes > 0 {
		text += fmt.Sprintf(", %s given back by madvise", bytesText(t.DiscardedBytes))
	}
	p.paragraph("  ", text+fmt.Sprintf("; malloc itself mapped %s, which is not counted here", bytesText(t.AllocatorBytes)))
	if len(m.Sites) == 0 {
		return
	}
	var rows [][]string
	for i, site := range m.Sites {
		if i == p.top {
			break
		}
		rows = append(rows, []string{countText(site.Maps), bytesText(site.MappedBytes), bytesText(site.LiveBytes), bytesText(site.ResidentBytes),
			clip(printable(callersText(mapper(site.Stack))), 50)})
	}
	p.table([]column{{"calls", true}, {"mapped", true}, {"still mapped", true}, {"resident", true}, {"by", false}}, rows)
	p.more(len(m.Sites), "site")
}

// mapper is a stack without the C library's wrappers of the system call at its leaf.
func mapper(stack recording.Stack) recording.Stack {
	for i, f := range stack {
		if !strings.Contains(f.Function, "mmap") && !strings.Contains(f.Function, "mremap") {
			return stack[i:]
		}
	}
	return stack
}

// signedBytes writes a number of bytes with its sign.
func signedBytes(bytes int64) string {
	if bytes < 0 {
		return "-" + bytesText(uint64(-bytes))
	}
	return "+" + bytesText(uint64(bytes))
}
