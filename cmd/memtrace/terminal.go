package main

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"memtrace/output"
)

// textOptions adds what standard output can show: colours on a terminal unless NO_COLOR is
// set, the terminal's width, and no more than ASCII where the locale says so.
func (e *environment) textOptions(o output.Options) output.Options {
	o.Plain = asciiLocale(os.Getenv)
	if !isTerminal(e.stdout) {
		return o
	}
	o.Colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if file, ok := e.stdout.(*os.File); ok {
		if size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err == nil {
			o.Width = int(size.Col)
		}
	}
	return o
}

// asciiLocale tells whether the locale asks for other characters than UTF-8's. Where none
// is set at all, as in containers and services, UTF-8 is as good a guess as any.
func asciiLocale(variable func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToLower(variable(name)); locale != "" {
			return !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8")
		}
	}
	return false
}

// hasWindow tells whether the character device is a terminal, not /dev/null.
func hasWindow(file *os.File) bool {
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}
