package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"memtrace/output"
	"memtrace/tracer/doctor"
	"memtrace/tracer/recording"
	"memtrace/tracer/target"
)

const doctorHelp = `memtrace doctor says what this kernel, these privileges and, with --pid, this process allow:
one line for each capability, yes, or no with what to do about it. It attaches no probe.

Exit status: 0 when tracing is possible, 3 when something necessary is missing.`

const doctorExamples = `  memtrace doctor
  memtrace doctor --pid 4242
  memtrace doctor --format json | jq '.capabilities[] | select(.available | not)'
`

// runDoctor is memtrace doctor.
func runDoctor(ctx context.Context, e *environment, arguments []string) error {
	flags := e.flagSet("memtrace doctor", doctorHelp, doctorExamples)
	pid := flags.IntP("pid", "p", 0, "look at this process too")
	format := flags.StringP("format", "f", "text", "format on standard output: text or json")
	if err := parse(flags, arguments); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return usageError("unexpected word %q: memtrace doctor takes flags only", flags.Arg(0))
	case flags.Changed("pid") && *pid <= 0:
		return usageError("--pid %d: want the number of a process", *pid)
	case *format != "text" && *format != "json":
		return usageError("--format %q: the doctor writes text or json", *format)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	checkup, err := doctor.Examine(ctx, *pid)
	if err != nil {
		return err
	}
	if err := e.writeCheckup(checkup, *format); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return missingRefusal(checkup)
}

func (e *environment) writeCheckup(c *recording.Checkup, format string) error {
	var text bytes.Buffer
	var err error
	if format == "json" {
		err = output.DoctorJSON(&text, c)
	} else {
		err = output.Doctor(&text, c, e.textOptions(output.Options{}))
	}
	_, writeErr := e.stdout.Write(text.Bytes())
	return errors.Join(err, writeErr)
}

// missingRefusal says in one line what is necessary and missing, nil when nothing is.
func missingRefusal(c *recording.Checkup) error {
	missing := c.Missing()
	if len(missing) == 0 {
		return nil
	}
	return &target.Refusal{Reason: fmt.Sprintf("no %s: %s", missing[0].Name, missing[0].Detail), Next: missing[0].Next}
}
