package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"memtrace/tracer"
	"memtrace/tracer/target"
)

// command is one subcommand: a file of this package and a row of commands.
type command struct {
	name    string
	summary string
	run     func(context.Context, *environment, []string) error
}

// commands lists the subcommands in the order of the help.
func commands() []command {
	return []command{
		{"diff", "compare two recordings or two soaks: what changed, and whether it helped", runDiff},
		{"doctor", "what this kernel, these privileges and this process allow, and what to do", runDoctor},
		{"heap", "what glibc holds right now: live, free, free and resident, per arena", runHeap},
		{"report", "render a recording or a soak again, in any format", runReport},
		{"serve", "trace without end and serve Prometheus metrics", runServe},
		{"soak", "sample for hours, then say: plateau, leak, steps, or still warming up", runSoak},
	}
}

// Exit statuses of the contract.
const (
	statusFailed      = 1 // tracing or reading failed
	statusUsage       = 2 // the command line is wrong
	statusUntraceable = 3 // this machine or target cannot be traced
)

// usage marks an error of the command line.
type usage struct{ error }

// usageError makes an error of the command line, exit status 2.
func usageError(format string, arguments ...any) error {
	return usage{fmt.Errorf(format, arguments...)}
}

func (u usage) Unwrap() error { return u.error }

// commandEnded carries the exit status of a command that memtrace ran, as its own.
type commandEnded struct{ status int }

func (c commandEnded) Error() string {
	return fmt.Sprintf("the command ended with status %d", c.status)
}

// statusOf maps an error to the exit status of the contract. A lack of privilege that a
// subcommand meets anywhere is something that this machine does not allow.
func statusOf(err error) int {
	var wrong usage
	var refusal *target.Refusal
	var round *tracer.RoundError
	switch {
	case errors.As(err, &wrong), errors.As(err, &round):
		return statusUsage
	case errors.As(err, &refusal):
		return statusUntraceable
	}
	return statusFailed
}

// flagSet makes a set of flags whose help begins with the given text and ends with examples.
func (e *environment) flagSet(name, help, examples string) *pflag.FlagSet {
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	flags.SetOutput(e.stderr)
	flags.SortFlags = false
	flags.Usage = func() {
		fmt.Fprintf(e.stdout, "%s\n\nFlags:\n%s\nExamples:\n%s", strings.TrimSpace(help), flags.FlagUsagesWrapped(100), examples)
	}
	return flags
}

// parse reads a command line into the flags; what is wrong with it is a usage error.
func parse(flags *pflag.FlagSet, arguments []string) error {
	err := flags.Parse(arguments)
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return err
	}
	return usageError("%w; %s --help lists the flags", err, flags.Name())
}

// isTerminal tells whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && hasWindow(file)
}
