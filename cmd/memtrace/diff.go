package main

import (
	"context"
	"fmt"
	"io"

	"memtrace/output"
	"memtrace/tracer/compare"
	"memtrace/tracer/recording"
)

const diffHelp = `memtrace diff compares two recordings, or two soaks: what changed, beyond what the scatter of
their own series explains, and whether the change did what it was made for. Given one soak
file, it compares the program's first start in it with its last.`

const diffExamples = `  memtrace diff before.json.gz after.json.gz
  memtrace diff before.jsonl after.jsonl
  memtrace diff -f json before.json after.json | jq .summary
`

// diffFlags is the command line of memtrace diff.
type diffFlags struct {
	paths   []string
	format  string
	outputs []string
	noPager bool
	options output.Options
}

// runDiff is memtrace diff.
func runDiff(_ context.Context, e *environment, arguments []string) error {
	flags, err := parseDiff(e, arguments)
	if err != nil {
		return err
	}
	files, err := openOutputs(flags.outputs)
	if err != nil {
		return err
	}
	before, after, err := readSides(flags.paths)
	if err != nil {
		return err
	}
	comparison := compare.Sides(before, after)
	for _, file := range files {
		write, err := output.DiffFormatForFile(file.path)
		if err != nil {
			return usageError("%w", err)
		}
		err = file.writeBy(func(w io.Writer) error { return write(w, comparison, flags.options) })
		if err != nil {
			return err
		}
	}
	return e.writeDiff(comparison, flags)
}

func parseDiff(e *environment, arguments []string) (*diffFlags, error) {
	d := &diffFlags{}
	flags := e.flagSet("memtrace diff", diffHelp, diffExamples)
	flags.StringVarP(&d.format, "format", "f", "text", "format on standard output: text or json")
	flags.StringArrayVarP(&d.outputs, "output", "o", nil, "write this file too; repeatable; the suffix chooses the format")
	flags.IntVar(&d.options.Top, "top", output.DefaultTop, "sites to list")
	flags.BoolVar(&d.noPager, "no-pager", false, "on a terminal: no pager")
	if err := parse(flags, arguments); err != nil {
		return nil, err
	}
	d.paths = flags.Args()
	switch {
	case len(d.paths) == 0 || len(d.paths) > 2:
		return nil, usageError("which files? Give two recordings or soak files: memtrace diff BEFORE AFTER")
	case d.format != "text" && d.format != "json":
		return nil, usageError("--format %q: a comparison is written as text or json", d.format)
	case d.options.Top < 1:
		return nil, usageError("--top %d: want at least 1", d.options.Top)
	}
	for _, path := range d.outputs {
		if _, err := output.DiffFormatForFile(path); err != nil {
			return nil, usageError("%w", err)
		}
	}
	return d, nil
}

// readSides reads what is compared.
func readSides(paths []string) (before, after compare.Side, err error) {
	first, err := readDocument(paths[0])
	if err != nil {
		return before, after, err
	}
	if len(paths) == 1 {
		if first.soak == nil {
			return before, after, usageError("with what? Give two recordings: memtrace diff BEFORE AFTER")
		}
		starts := compare.OfSoak(first.soak)
		if len(starts) < 2 {
			return before, after, fmt.Errorf("read %s: it holds %d start of the program; give a second file to compare with", first.path, len(starts))
		}
		return starts[0], starts[len(starts)-1], nil
	}
	second, err := readDocument(paths[1])
	if err != nil {
		return before, after, err
	}
	if before, err = sideOf(first); err != nil {
		return before, after, err
	}
	after, err = sideOf(second)
	return before, after, err
}

// sideOf makes a side of a file; of a soak with several starts, the last counts.
func sideOf(d document) (compare.Side, error) {
	if d.recording != nil {
		return compare.OfRecording(d.recording), nil
	}
	starts := compare.OfSoak(d.soak)
	if len(starts) == 0 {
		return compare.Side{}, fmt.Errorf("read %s: it holds no sample yet", d.path)
	}
	side := starts[len(starts)-1]
	if len(starts) > 1 {
		side = side.WithNote(fmt.Sprintf("the file holds %d starts of the program, the last is compared", len(starts)))
	}
	return side, nil
}

// writeDiff writes the comparison to standard output.
func (e *environment) writeDiff(c *recording.Comparison, flags *diffFlags) error {
	err := e.paged(flags.format == "text" && !flags.noPager, func(w io.Writer) error {
		if flags.format == "json" {
			return output.DiffJSON(w, c)
		}
		return output.Diff(w, c, e.textOptions(flags.options))
	})
	if err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	return nil
}
