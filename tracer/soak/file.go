// Package soak samples a process for hours without probes and judges the series: plateau,
// leak, steps, warming up, or too short to say.
package soak

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"memtrace/tracer/recording"
)

// File is a soak file that is being written: a header line, then a sample a line, each
// written with one call and synced, so that a crash loses at most the line in hand.
type File struct {
	file *os.File
	// torn tells that the last write failed part of the way: the next line must first end that one.
	torn bool
}

// Open opens a soak file for appending. A new or empty file gets the header; an existing
// one keeps its own, and a torn last line, as a crash leaves it, is ended.
func Open(path string, header recording.SoakHeader) (*File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the soak file: %w", err)
	}
	f := &File{file: file}
	if err := f.prepare(header); err != nil {
		file.Close()
		return nil, err
	}
	return f, nil
}

// prepare writes the header, or checks the one that is there.
func (f *File) prepare(header recording.SoakHeader) error {
	info, err := f.file.Stat()
	if err != nil {
		return fmt.Errorf("look at the soak file: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return f.line(header)
	}
	first, err := bufio.NewReader(io.NewSectionReader(f.file, 0, longestLine)).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the soak file: %w", err)
	}
	var there recording.SoakHeader
	if json.Unmarshal(first, &there) != nil || there.Schema != recording.SoakSchema {
		return fmt.Errorf("%s exists and is no soak file: give -o another name", f.file.Name())
	}
	last := make([]byte, 1)
	if _, err := f.file.ReadAt(last, info.Size()-1); err != nil {
		return fmt.Errorf("read the soak file: %w", err)
	}
	f.torn = last[0] != '\n'
	return nil
}

// Append writes one sample. After an error, a full disk say, the file is still whole up to
// the sample before, and later samples can be appended.
func (f *File) Append(sample recording.Sample) error { return f.line(sample) }

// line writes one value as a line.
func (f *File) line(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write the soak file: %w", err)
	}
	text = append(text, '\n')
	if f.torn {
		text = append([]byte{'\n'}, text...)
	}
	n, err := f.file.Write(text)
	if err != nil {
		f.torn = f.torn || n > 0
		return fmt.Errorf("write the soak file: %w", err)
	}
	f.torn = false
	if err := f.file.Sync(); err != nil && !errors.Is(err, os.ErrInvalid) && !unsyncable(err) {
		return fmt.Errorf("write the soak file to its disk: %w", err)
	}
	return nil
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Bounds on what Read accepts: a year of samples every ten seconds is three million lines.
const (
	longestLine = 1 << 20
	mostSamples = 5_000_000
)

// Read reads a soak file. Lines that are no sample (torn by a crash, or foreign) are
// skipped and noted; a file without a header is refused.
func Read(r io.Reader) (*recording.Soak, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), longestLine)
	if !lines.Scan() {
		return nil, errors.Join(errors.New("the soak file is empty"), lines.Err())
	}
	soak := &recording.Soak{Samples: []recording.Sample{}, Notes: []string{}}
	if err := json.Unmarshal(lines.Bytes(), &soak.Header); err != nil || soak.Header.Schema == "" {
		return nil, errors.New("this is no soak file: its first line is no header")
	}
	if soak.Header.Schema != recording.SoakSchema {
		return nil, fmt.Errorf("soak files of schema %.40q are not known here, only %q: use a newer memtrace", soak.Header.Schema, recording.SoakSchema)
	}
	number, skipped, first := 1, 0, 0
	for lines.Scan() {
		number++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		var sample recording.Sample
		if err := json.Unmarshal(text, &sample); err != nil || sample.Time.IsZero() {
			if skipped++; first == 0 {
				first = number
			}
			continue
		}
		if len(soak.Samples) == mostSamples {
			soak.Notes = append(soak.Notes, fmt.Sprintf("only the first %d samples were read", mostSamples))
			break
		}
		soak.Samples = append(soak.Samples, sample)
	}
	if err := lines.Err(); err != nil {
		soak.Notes = append(soak.Notes, fmt.Sprintf("reading stopped behind line %d: %v", number, err))
	}
	if skipped > 0 {
		soak.Notes = append(soak.Notes, fmt.Sprintf("lines skipped because they are torn or foreign: %d, the first is line %d", skipped, first))
	}
	return soak, nil
}
