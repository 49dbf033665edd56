package main

import (
	"fmt"
	"time"

	"memtrace/tracer"
)

// progressEvery is how often the progress line is written anew.
const progressEvery = time.Second

// progress writes one line on the terminal while a trace runs: elapsed time, allocation
// rate, losses, estimated slowdown.
type progress struct {
	done    chan struct{}
	stopped chan struct{}
}

// startProgress begins the line, where standard error is a terminal and it is wanted.
func (e *environment) startProgress(session *tracer.Session, quiet bool) *progress {
	p := &progress{done: make(chan struct{}), stopped: make(chan struct{})}
	if quiet || !isTerminal(e.stderr) {
		close(p.stopped)
		return p
	}
	go func() {
		defer close(p.stopped)
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			select {
			case <-p.done:
				fmt.Fprint(e.stderr, "\r\x1b[K")
				return
			case <-ticker.C:
				if now, err := session.Progress(); err == nil {
					fmt.Fprintf(e.stderr, "\r\x1b[K%s", progressLine(now))
				}
			}
		}
	}()
	return p
}

// progressLine is what the terminal shows.
func progressLine(now tracer.Progress) string {
	line := fmt.Sprintf("tracing %s  %.0f allocations/s  %.1f MiB/s", now.Elapsed.Round(time.Second),
		now.AllocsPerSecond, now.BytesPerSecond/(1<<20))
	if now.Lost > 0 {
		line += fmt.Sprintf("  %d lost", now.Lost)
	}
	return line + fmt.Sprintf("  slowdown %.1f %%  (Ctrl-C: report)", now.Slowdown*100)
}

// stop ends the line and leaves no trace of it.
func (p *progress) stop() {
	close(p.done)
	<-p.stopped
}
