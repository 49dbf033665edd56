package output

import (
	"fmt"
	"io"
	"strings"

	"memtrace/tracer/recording"
)

// SoakFormat is one way to write the report of a soak.
type SoakFormat struct {
	name     string
	suffixes []string
	// Write renders the report.
	Write func(io.Writer, *recording.Soak, recording.SoakReport, Options) error
}

func soakFormats() []SoakFormat {
	return []SoakFormat{
		{"text", []string{".txt"}, SoakText},
		{"json", []string{".json"}, func(w io.Writer, _ *recording.Soak, report recording.SoakReport, _ Options) error {
			return SoakJSON(w, report)
		}},
		{"", []string{".html"}, SoakHTML},
	}
}

// SoakFormatForName returns the format that --format calls name.
func SoakFormatForName(name string) (SoakFormat, error) {
	for _, f := range soakFormats() {
		if f.name == name && name != "" {
			return f, nil
		}
	}
	return SoakFormat{}, fmt.Errorf("a soak is reported as text or json, not as %q", name)
}

// SoakFormatForFile returns the format that the file's suffix asks for.
func SoakFormatForFile(path string) (SoakFormat, error) {
	var all []string
	for _, f := range soakFormats() {
		for _, suffix := range f.suffixes {
			if strings.HasSuffix(path, suffix) {
				return f, nil
			}
			all = append(all, suffix)
		}
	}
	return SoakFormat{}, fmt.Errorf("a soak cannot be written to %q: end the name in one of %s", path, strings.Join(all, " "))
}
