// Command bench measures what tracers cost their targets: an empty probe (the floor of what
// any probe costs here), memtrace in each of its modes, and other tools, on the same
// workloads in the same run. It prints one table; docs/overhead.md says how to read it.
//
// Each figure is the median of paired runs: the rate of one process untraced, then traced.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// plan is what to measure, and for how long.
type plan struct {
	memtrace  string
	length    time.Duration // of one measurement
	pairs     int
	workloads string
	tools     string
}

func run(ctx context.Context) error {
	var p plan
	flag.StringVar(&p.memtrace, "memtrace", "bin/memtrace", "the program to measure")
	flag.DurationVar(&p.length, "length", 3*time.Second, "how long one measurement takes")
	flag.IntVar(&p.pairs, "pairs", 5, "how many pairs of measurements make a figure")
	flag.StringVar(&p.workloads, "workloads", "", "only those whose name holds this")
	flag.StringVar(&p.tools, "tools", "", "only those whose name holds this")
	flag.Parse()
	directory, err := os.MkdirTemp("", "memtrace-bench")
	if err != nil {
		return fmt.Errorf("make a place for the workloads: %w", err)
	}
	defer os.RemoveAll(directory)
	t := &table{}
	t.head(os.Stdout, p)
	for _, w := range workloads() {
		if !strings.Contains(w.name, p.workloads) {
			continue
		}
		if err := w.prepare(directory); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		for _, tool := range tools(p.memtrace) {
			if !strings.Contains(tool.name, p.tools) {
				continue
			}
			t.row(os.Stdout, w.name, tool.name, p.measure(ctx, w, tool))
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}
