// Package watch keeps a trace on every process of a choice (one process, all of a name, all
// of a control group) while processes come and go.
package watch

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"

	"memtrace/tracer/recording"
)

// Session is a trace under way. What it has found can be read until Close returns, without
// waiting on the traced process.
type Session interface {
	// Latest returns the newest snapshot and when it was taken.
	Latest() (*recording.Recording, time.Time)
	// LastMinute returns what happened in the last minute.
	LastMinute() *recording.Recording
	// Done is closed when the process has ended.
	Done() <-chan struct{}
	Close() error
}

// Options says which processes to trace and how.
type Options struct {
	// Choose lists the processes that are wanted now.
	Choose func() ([]int, error)
	// Start starts a trace. It is called for one process at a time.
	Start func(ctx context.Context, pid int) (Session, error)
	// Every is the time between two looks at the processes.
	Every time.Duration
	// Most bounds how many processes are traced at once; further ones wait.
	Most int
	// Report, if set, is told what happens: traces that begin, end or fail.
	Report func(pid int, what string, err error)
}

// Target is one process as the watch sees it.
type Target struct {
	PID     int
	Comm    string
	Session Session // nil when it could not be traced
	Err     error   // why it could not
}

// Ended tells whether the process has ended since it was last looked at.
func (t Target) Ended() bool { return ended(t.Session) }

// Watch is a set of traces. Run keeps it up to date.
type Watch struct {
	options Options

	mutex   sync.Mutex
	targets map[identity]*Target
	waiting int // processes beyond Most
	looked  bool
}

// identity tells a process from a later one with the same id.
type identity struct {
	pid   int
	start uint64
}

// New makes a watch that traces nothing yet.
func New(options Options) *Watch {
	return &Watch{options: options, targets: map[identity]*Target{}}
}

// Run looks at the processes at once and then again and again until the context ends; then
// it closes every trace.
func (w *Watch) Run(ctx context.Context) error {
	defer w.closeAll()
	ticker := time.NewTicker(w.options.Every)
	defer ticker.Stop()
	for {
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			w.report(0, "look for processes", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// look starts the traces that are missing and ends those of processes that are gone.
func (w *Watch) look(ctx context.Context) error {
	pids, err := w.options.Choose()
	if err != nil {
		return err
	}
	wanted := map[identity]bool{}
	for _, pid := range pids {
		if start, alive := startOf(pid); alive {
			wanted[identity{pid, start}] = true
		}
	}
	w.drop(wanted)
	w.start(ctx, wanted)
	w.mutex.Lock()
	w.looked = true
	w.mutex.Unlock()
	return nil
}

// drop ends the traces of processes that are gone or no longer wanted.
func (w *Watch) drop(wanted map[identity]bool) {
	w.mutex.Lock()
	var gone []*Target
	for id, target := range w.targets {
		if !wanted[id] || ended(target.Session) {
			gone = append(gone, target)
			delete(w.targets, id)
		}
	}
	w.mutex.Unlock()
	for _, target := range gone {
		if target.Session == nil {
			continue
		}
		w.report(target.PID, "ended", target.Session.Close())
	}
}

// ended tells whether the process of a session has ended.
func ended(session Session) bool {
	if session == nil {
		return false
	}
	select {
	case <-session.Done():
		return true
	default:
		return false
	}
}

// start begins the traces that are missing, lowest process id first, as far as Most allows.
func (w *Watch) start(ctx context.Context, wanted map[identity]bool) {
	missing := w.missing(wanted)
	w.mutex.Lock()
	room := max(0, w.options.Most-len(w.targets))
	w.waiting = max(0, len(missing)-room)
	w.mutex.Unlock()
	for _, id := range missing[:min(room, len(missing))] {
		if ctx.Err() != nil {
			return
		}
		target := &Target{PID: id.pid, Comm: CommOf(id.pid)}
		target.Session, target.Err = w.options.Start(ctx, id.pid)
		if target.Err != nil {
			target.Session = nil
		}
		w.report(id.pid, "traced", target.Err)
		w.mutex.Lock()
		w.targets[id] = target
		w.mutex.Unlock()
	}
}

// missing lists the wanted processes that have no trace, in the order of their ids.
func (w *Watch) missing(wanted map[identity]bool) []identity {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var missing []identity
	for id := range wanted {
		if w.targets[id] == nil {
			missing = append(missing, id)
		}
	}
	sort.Slice(missing, func(i, j int) bool { return missing[i].pid < missing[j].pid })
	return missing
}

// Targets returns the processes as they are now, in the order of their ids.
func (w *Watch) Targets() []Target {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	targets := make([]Target, 0, len(w.targets))
	for _, target := range w.targets {
		targets = append(targets, *target)
	}
	sort.Slice(targets, func(i, j int) bool { return targets[i].PID < targets[j].PID })
	return targets
}

// Waiting is how many processes are wanted but not traced because Most are.
func (w *Watch) Waiting() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.waiting
}

// Looked tells whether the processes have been looked at once.
func (w *Watch) Looked() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.looked
}

// closeAll ends every trace.
func (w *Watch) closeAll() {
	w.mutex.Lock()
	targets := w.targets
	w.targets = map[identity]*Target{}
	w.mutex.Unlock()
	for _, target := range targets {
		if target.Session == nil {
			continue
		}
		if err := target.Session.Close(); err != nil {
			w.report(target.PID, "ended", err)
		}
	}
}

func (w *Watch) report(pid int, what string, err error) {
	if w.options.Report != nil && !errors.Is(err, context.Canceled) {
		w.options.Report(pid, what, err)
	}
}

// String tells the watch's state in a few words, for logs.
func (w *Watch) String() string {
	return fmt.Sprintf("%d traced, %d waiting", len(w.Targets()), w.Waiting())
}
