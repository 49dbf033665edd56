package output

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// longestName bounds the names that come from the target: a template's name can run to
// thousands of characters.
const longestName = 2000

// printable makes text that comes from the target safe for terminals, pages and metrics:
// control characters and escape sequences, bytes that are no UTF-8 and characters that
// change the direction of writing become '?', and what is too long is cut.
func printable(text string) string {
	if len(text) <= longestName && plain(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if b.Len() >= longestName {
			b.WriteString("…")
			break
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			r = '?'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// plain tells whether all of the text is printable ASCII.
func plain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}
