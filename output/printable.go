package output

import (
	"regexp"
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

// safeLine is the last guard of a line of the report: whatever a recording holds, nothing
// that steers a terminal gets through, except for the report's own colours.
func safeLine(line string, colours bool) string {
	if plain(line) {
		return line
	}
	var b strings.Builder
	for i := 0; i < len(line); {
		if code := colourCode.FindString(line[i:]); colours && code != "" {
			b.WriteString(code)
			i += len(code)
			continue
		}
		r, size := utf8.DecodeRuneInString(line[i:])
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			r = '?'
		}
		b.WriteRune(r)
		i += size
	}
	return b.String()
}

// colourCode is an escape sequence that only changes colours.
var colourCode = regexp.MustCompile("^\x1b\\[[0-9;]*m")

// substitutes for the characters of the report that are no ASCII.
var substitutes = strings.NewReplacer("… and", "... and", "…", "~", "→", "->", "≤", "<=", "±", "+-", "×", "x", "µ", "u", "–", "-", "·", ".",
	"█", "#", "▓", "@", "▒", "%", "▏", "|", "▁", "_", "▂", ".", "▃", "-", "▄", "=", "▅", "+", "▆", "*", "▇", "%")

// plainText writes text in ASCII; names of the target keep a mark for what ASCII lacks.
func plainText(text string) string {
	text = substitutes.Replace(text)
	var b strings.Builder
	for _, r := range text {
		if r > unicode.MaxASCII {
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
