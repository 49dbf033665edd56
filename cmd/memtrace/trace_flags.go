package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"memtrace/output"
	"memtrace/tracer"
)

const traceHelp = `memtrace traces a running process, or a command that it starts, and tells who allocates
what, which allocator state and which locks cost time and memory.

  memtrace --pid PID [flags]         trace until Ctrl-C, --duration or the process's exit
  memtrace [flags] -- COMMAND [ARG…] start COMMAND, miss nothing before its first allocation
  memtrace SUBCOMMAND --help         the other things it does`

const traceExamples = `  memtrace --pid 4242 --duration 30s
  memtrace --pid 4242 --probes alloc --exact -o run.json -o flame.svg
  memtrace --round func:poll_once --pid 4242
  memtrace -o startup.json.gz -- ./server --port 8080

COMMAND's input, output and exit status are its own: memtrace ends with the status that
COMMAND ended with. When the trace ends first (--duration, Ctrl-C), COMMAND gets SIGTERM.

Exit status: 0 done, 1 tracing failed, 2 the command line is wrong, 3 this machine or
target cannot be traced.
`

// traceFlags is the command line of a trace.
type traceFlags struct {
	options   tracer.Options
	format    string
	outputs   []string
	measure   string
	listen    string
	readyFile string
	quiet     bool
	version   bool
	command   []string // after "--"
}

// parseTrace reads the command line of a trace and checks what can be checked without a
// target.
func parseTrace(e *environment, arguments []string) (*traceFlags, error) {
	t := &traceFlags{}
	overhead, sample := percentValue(0.10), sizeValue(tracer.DefaultSampleBytes)
	var probes probesValue
	flags := e.flagSet("memtrace", traceHelp+subcommandHelp(), traceExamples)
	pid := flags.StringP("pid", "p", "", "the process to trace")
	flags.DurationVarP(&t.options.Duration, "duration", "d", 0, "stop after this time, such as 30s or 5m (default until Ctrl-C)")
	flags.Var(&probes, "probes", "any of "+strings.Join(tracer.ProbeNames(), ",")+" (default all)")
	flags.StringVar(&t.options.Round, "round", "auto", "what separates two rounds of work: auto, func:SYMBOL, usdt:PROVIDER:NAME, log:TEXT, every:60s or none")
	flags.BoolVar(&t.options.Exact, "exact", false, "take every call's stack, leave out failed calls, no duty cycle")
	flags.Var(&overhead, "max-overhead", "hold the target's slowdown to this by pausing the probes; off never does")
	flags.Var(&sample, "sample-bytes", "mean bytes between two stacks taken")
	flags.BoolVar(&t.options.FollowForks, "follow-forks", false, "trace what children allocate too")
	flags.IntVar(&t.options.Top, "top", output.DefaultTop, "rows per table")
	flags.StringVarP(&t.format, "format", "f", "text", "format on standard output: text, json or folded")
	flags.StringArrayVarP(&t.outputs, "output", "o", nil, "write this file too; repeatable; the suffix chooses the format")
	flags.StringVar(&t.measure, "measure", output.DefaultMeasure, "what a folded file or flame graph weighs: "+strings.Join(output.MeasureNames(), ", "))
	flags.StringVar(&t.listen, "listen", "", "serve Prometheus metrics at this address while tracing")
	flags.StringVar(&t.readyFile, "ready-file", "", "write this file when the probes are attached")
	flags.BoolVarP(&t.quiet, "quiet", "q", false, "no progress on standard error")
	flags.BoolVar(&t.version, "version", false, "print the version")
	if err := parse(flags, arguments); err != nil {
		return nil, err
	}
	if t.version {
		return t, nil
	}
	t.options.MaxOverhead, t.options.SampleBytes, t.options.Probes = float64(overhead), uint64(sample), probes
	t.options.Version = version()
	if err := t.takeTarget(flags, *pid); err != nil {
		return nil, err
	}
	return t, t.check(flags)
}

// subcommandHelp lists the subcommands.
func subcommandHelp() string {
	text := "\n\nSubcommands:"
	for _, c := range commands() {
		text += fmt.Sprintf("\n  %-8s %s", c.name, c.summary)
	}
	return text
}

// takeTarget takes what is traced: a process id, or a command after "--".
func (t *traceFlags) takeTarget(flags *pflag.FlagSet, pid string) error {
	words := flags.Args()
	dash := flags.ArgsLenAtDash()
	if dash < 0 && len(words) > 0 {
		return usageError("unexpected word %q: to start a program, write -- before it", words[0])
	}
	if dash > 0 {
		return usageError("unexpected word %q before --", words[0])
	}
	t.command = words
	switch {
	case pid != "" && len(t.command) > 0:
		return usageError("give --pid or a command, not both")
	case pid == "" && len(t.command) == 0:
		return usageError("what to trace? Give --pid PID or -- COMMAND; memtrace --help shows examples")
	case pid == "":
		return nil
	}
	number, err := strconv.Atoi(pid)
	if err != nil || number <= 0 {
		return usageError("--pid %q: want the number of a process", pid)
	}
	if number == os.Getpid() {
		return usageError("--pid %d is memtrace itself: give another process", number)
	}
	t.options.PID = number
	return nil
}

// check refuses values that make no sense.
func (t *traceFlags) check(flags *pflag.FlagSet) error {
	if flags.Changed("duration") && t.options.Duration <= 0 {
		return usageError("--duration %v: want more than 0", t.options.Duration)
	}
	if t.options.Duration > 0 && t.options.Duration < time.Millisecond {
		return usageError("--duration %v: want at least 1ms", t.options.Duration)
	}
	if t.options.Exact && flags.Changed("max-overhead") && t.options.MaxOverhead > 0 {
		return usageError("--exact takes every call: it cannot hold to --max-overhead; leave one of them out")
	}
	if t.options.Top < 1 {
		return usageError("--top %d: want at least 1", t.options.Top)
	}
	if err := output.CheckMeasure(t.measure); err != nil {
		return usageError("--measure: %w", err)
	}
	if _, err := output.FormatForName(t.format); err != nil {
		return usageError("--format: %w", err)
	}
	if err := tracer.CheckRound(t.options.Round); err != nil {
		return usageError("--round: %w", err)
	}
	return nil
}
