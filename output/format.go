// Package output renders a recording: text, JSON, folded stacks, profiles, pictures, pages
// and metrics. One format is one file and one row of the table in this one.
package output

import (
	"fmt"
	"io"
	"strings"

	"memtrace/tracer/recording"
)

// Options say how to render. The zero value is a plain file with the default measure.
type Options struct {
	// Top is the number of rows of a table; 0 = DefaultTop.
	Top int
	// Measure is what a stack weighs in folded files and flame graphs; "" = DefaultMeasure.
	Measure string
	// Colour allows escape sequences in text, for a terminal.
	Colour bool
	// Plain keeps text to ASCII, for terminals that show nothing else.
	Plain bool
	// Width is where text is broken into lines, in columns; 0 or more than 100 = 100.
	Width int
}

// DefaultTop is the number of rows of a table.
const DefaultTop = 20

func (o Options) top() int {
	if o.Top <= 0 {
		return DefaultTop
	}
	return o.Top
}

func (o Options) measure() string {
	if o.Measure == "" {
		return DefaultMeasure
	}
	return o.Measure
}

// Format is one way to write a recording.
type Format struct {
	// Name is what --format calls it; "" where it makes no sense on a terminal.
	Name string
	// Suffixes are the ends of file names that ask for it.
	Suffixes []string
	// Write renders the recording.
	Write func(io.Writer, *recording.Recording, Options) error
}

// formats lists the formats; longer suffixes come before shorter ones that they end in.
func formats() []Format {
	return []Format{
		{"text", []string{".txt"}, Text},
		{"", []string{".trace.json"}, Timeline},
		{"json", []string{".json"}, JSON},
		{"", []string{".json.gz"}, JSONGzip},
		{"folded", []string{".folded"}, Folded},
		{"", []string{".html"}, HTML},
		{"", []string{".pb.gz"}, Pprof},
		{"", []string{".svg"}, FlameSVG},
	}
}

// FormatForName returns the format that --format calls name.
func FormatForName(name string) (Format, error) {
	var names []string
	for _, f := range formats() {
		if f.Name == "" {
			continue
		}
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Format{}, fmt.Errorf("unknown format %q: want one of %s", name, strings.Join(names, ", "))
}

// FormatForFile returns the format that the file's suffix asks for.
func FormatForFile(path string) (Format, error) {
	var suffixes []string
	for _, f := range formats() {
		for _, suffix := range f.Suffixes {
			if strings.HasSuffix(path, suffix) {
				return f, nil
			}
			suffixes = append(suffixes, suffix)
		}
	}
	return Format{}, fmt.Errorf("no format for the file name %q: end it in one of %s", path, strings.Join(suffixes, " "))
}
