package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"memtrace/output"
	"memtrace/tracer/recording"
	"memtrace/tracer/soak"
)

// document is what a file of memtrace's holds: a recording or a soak, the other is nil.
type document struct {
	path      string
	recording *recording.Recording
	soak      *recording.Soak
}

// readDocument reads a recording or a soak file; "-" is standard input. What is wrong with
// the file is said in one line that names it.
func readDocument(path string) (document, error) {
	if path == "-" {
		return decodeDocument("standard input", os.Stdin)
	}
	file, err := os.Open(path)
	if err != nil {
		var cause *fs.PathError
		if errors.As(err, &cause) {
			err = cause.Err
		}
		return document{}, fmt.Errorf("read %s: %w", path, err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return document{}, fmt.Errorf("read %s: it is a directory; name a recording in it", path)
	}
	return decodeDocument(path, file)
}

// decodeDocument reads what the reader holds.
func decodeDocument(path string, r io.Reader) (document, error) {
	d := document{path: path}
	content, schema, err := output.Sniff(r)
	switch {
	case err != nil:
	case schema == recording.SoakSchema:
		d.soak, err = soak.Read(content)
	default:
		d.recording, err = output.Read(content)
	}
	if err != nil {
		return document{}, fmt.Errorf("read %s: %w", path, err)
	}
	return d, nil
}
