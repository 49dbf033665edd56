package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// table prints the rows as they come, so that a run that is cut short has told something.
type table struct{}

func (*table) head(to io.Writer, p plan) {
	kernel := "an unknown kernel"
	var name unix.Utsname
	if err := unix.Uname(&name); err == nil {
		kernel = "Linux " + unix.ByteSliceToString(name.Release[:])
	}
	fmt.Fprintf(to, "%s, %d processors, %s; medians of %d pairs of %s\n\n", kernel, runtime.NumCPU(), runtime.GOARCH, p.pairs, p.length)
	fmt.Fprintf(to, "| %-14s | %-31s | %10s | %10s | %8s | %6s | %9s | %9s |\n",
		"workload", "tracer", "untraced/s", "traced/s", "time", "spread", "own CPU", "own RSS")
	fmt.Fprintf(to, "|%s|%s|%s:|%s:|%s:|%s:|%s:|%s:|\n", strings.Repeat("-", 16), strings.Repeat("-", 33),
		strings.Repeat("-", 11), strings.Repeat("-", 11), strings.Repeat("-", 9), strings.Repeat("-", 7), strings.Repeat("-", 10), strings.Repeat("-", 10))
}

func (*table) row(to io.Writer, workload, tool string, r result) {
	if r.pairs == 0 {
		reason, _, _ := strings.Cut(fmt.Sprint(r.err), "\n")
		fmt.Fprintf(to, "| %-14s | %-31s | %s\n", workload, tool, reason)
		return
	}
	cpu, rss := "", ""
	if r.usage.rss > 0 {
		cpu, rss = seconds(r.usage.cpu), fmt.Sprintf("%.0f MiB", float64(r.usage.rss)/(1<<20))
	}
	fmt.Fprintf(to, "| %-14s | %-31s | %10s | %10s | %8s | %6.2f | %9s | %9s |\n", workload, tool,
		perSecond(r.untraced), perSecond(r.traced), fmt.Sprintf("× %.2f", r.ratio), r.spread, cpu, rss)
}
