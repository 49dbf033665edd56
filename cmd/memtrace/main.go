// Command memtrace tells who allocates what in a running process, what the allocator holds,
// and which locks its threads wait on. Each subcommand is one file; see command.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

func main() {
	e := &environment{stdout: os.Stdout, stderr: os.Stderr}
	os.Exit(e.run(context.Background(), os.Args[1:]))
}

// environment is what a subcommand may use of the world around it.
type environment struct {
	stdout io.Writer // data
	stderr io.Writer // everything else
}

// run carries out one command line and returns the exit status.
func (e *environment) run(ctx context.Context, arguments []string) int {
	err := e.dispatch(ctx, arguments)
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	var ended commandEnded
	if errors.As(err, &ended) {
		return ended.status
	}
	fmt.Fprintf(e.stderr, "memtrace: %s\n", strings.TrimSpace(err.Error()))
	return statusOf(err)
}

// dispatch finds the subcommand and runs it.
func (e *environment) dispatch(ctx context.Context, arguments []string) error {
	if len(arguments) > 0 && !strings.HasPrefix(arguments[0], "-") {
		for _, c := range commands() {
			if c.name == arguments[0] {
				return c.run(ctx, e, arguments[1:])
			}
		}
		return usageError("unknown command %q: to start a program, write memtrace -- %s; memtrace --help lists the commands",
			arguments[0], strings.Join(arguments, " "))
	}
	return runTrace(ctx, e, arguments)
}
