package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"memtrace/output"
	"memtrace/tracer/recording"
	"memtrace/tracer/soak"
)

const reportHelp = `memtrace report renders a recording (.json, .json.gz) or a soak file (.jsonl) again, in any
format. FILE may be "-", for standard input.`

const reportExamples = `  memtrace report run.json.gz
  memtrace report run.json --measure lock-wait -f folded
  memtrace report run.json -o run.html -o run.pb.gz -q
  memtrace report run.json --http localhost:8080    in pprof's own web interface
  memtrace report soak.jsonl
`

// reportFlags is the command line of memtrace report.
type reportFlags struct {
	path    string
	format  string
	outputs []string
	http    string
	quiet   bool
	noPager bool
	options output.Options
}

// runReport is memtrace report.
func runReport(ctx context.Context, e *environment, arguments []string) error {
	flags, err := parseReport(e, arguments)
	if err != nil {
		return err
	}
	files, err := openOutputs(flags.outputs)
	if err != nil {
		return err
	}
	read, err := readDocument(flags.path)
	if err != nil {
		return err
	}
	if read.soak != nil {
		return e.reportSoak(read.soak, flags, files)
	}
	if err := e.reportRecording(read.recording, flags, files); err != nil {
		return err
	}
	if flags.http != "" {
		return e.servePprof(ctx, read.recording, flags.http, flags.options)
	}
	return nil
}

func parseReport(e *environment, arguments []string) (*reportFlags, error) {
	r := &reportFlags{}
	flags := e.flagSet("memtrace report", reportHelp, reportExamples)
	flags.StringVarP(&r.format, "format", "f", "text", "format on standard output: text, json or folded")
	flags.StringArrayVarP(&r.outputs, "output", "o", nil, "write this file too; repeatable; the suffix chooses the format")
	flags.StringVar(&r.options.Measure, "measure", output.DefaultMeasure, "what a folded file or flame graph weighs: "+strings.Join(output.MeasureNames(), ", "))
	flags.IntVar(&r.options.Top, "top", output.DefaultTop, "rows per table")
	flags.StringVar(&r.http, "http", "", "open the recording in pprof's web interface at this address (a port alone: on loopback)")
	flags.BoolVarP(&r.quiet, "quiet", "q", false, "write only the files of -o, nothing to standard output")
	flags.BoolVar(&r.noPager, "no-pager", false, "on a terminal: no pager")
	if err := parse(flags, arguments); err != nil {
		return nil, err
	}
	if flags.NArg() != 1 {
		return nil, usageError("which file? Give one recording or soak file: memtrace report FILE")
	}
	r.path = flags.Arg(0)
	if r.options.Top < 1 {
		return nil, usageError("--top %d: want at least 1", r.options.Top)
	}
	if err := output.CheckMeasure(r.options.Measure); err != nil {
		return nil, usageError("--measure: %w", err)
	}
	if _, err := output.FormatForName(r.format); err != nil {
		return nil, usageError("--format: %w", err)
	}
	if r.http != "" {
		address, err := webAddress(r.http)
		if err != nil {
			return nil, usageError("--http: %w", err)
		}
		r.http = address
	}
	return r, nil
}

// reportRecording writes a recording to the files and to standard output; a recording that
// is served is not written to standard output unless its format was asked for.
func (e *environment) reportRecording(rec *recording.Recording, flags *reportFlags, files []outputFile) error {
	var errs []error
	for _, file := range files {
		errs = append(errs, file.write(rec, flags.options))
	}
	if flags.quiet || flags.http != "" {
		return errors.Join(errs...)
	}
	format, err := output.FormatForName(flags.format)
	if err != nil {
		return err
	}
	err = e.paged(flags.format == "text" && !flags.noPager, func(w io.Writer) error {
		return render(w, format, rec, e.textOptions(flags.options))
	})
	if err != nil {
		errs = append(errs, fmt.Errorf("write the report: %w", err))
	}
	return errors.Join(errs...)
}

// reportSoak judges a soak again and writes the report.
func (e *environment) reportSoak(s *recording.Soak, flags *reportFlags, files []outputFile) error {
	if flags.http != "" {
		return usageError("--http: a soak file holds no stacks for pprof to show")
	}
	format, err := output.SoakFormatForName(flags.format)
	if err != nil {
		return usageError("--format: %w", err)
	}
	report := soak.Judge(s)
	for _, file := range files {
		format, err := output.SoakFormatForFile(file.path)
		if err != nil {
			return usageError("%w", err)
		}
		err = file.writeBy(func(w io.Writer) error { return format.Write(w, s, report, flags.options) })
		if err != nil {
			return err
		}
	}
	if flags.quiet {
		return nil
	}
	err = e.paged(flags.format == "text" && !flags.noPager, func(w io.Writer) error {
		return format.Write(w, s, report, e.textOptions(flags.options))
	})
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
