package tracer

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"memtrace/tracer/recording"
	"memtrace/tracer/target"
)

// maxChildren is how many children are traced at once: each has maps of its own.
const maxChildren = 32

// childBudget counts the children that are traced in one trace, grandchildren included.
type childBudget struct {
	mutex sync.Mutex
	count int
}

func (b *childBudget) take() bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.count == maxChildren {
		return false
	}
	b.count++
	return true
}

func (b *childBudget) give() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.count--
}

// follow traces a child, one program after the other, until it ends.
func (f *forkFamily) follow(pid int) {
	budget := f.tracee.options.children
	if !budget.take() {
		f.miss(func(m *missedChildren) { m.many++ })
		return
	}
	defer budget.give()
	for f.context.Err() == nil {
		child, again, err := f.traceChild(pid)
		if err != nil {
			f.missFor(pid, err)
			return
		}
		f.mutex.Lock()
		f.done = append(f.done, child)
		f.mutex.Unlock()
		if !again {
			return
		}
	}
}

// traceChild traces the program that the child runs; again tells that it goes on as another.
func (f *forkFamily) traceChild(pid int) (child *tracedChild, again bool, err error) {
	options := f.tracee.options
	options.PID, options.Duration, options.Probes, options.Top = pid, 0, []string{"alloc"}, 0
	session, err := Open(f.context, options)
	if err != nil {
		return nil, false, err
	}
	defer session.Close()
	if err := session.Attach(f.context); err != nil {
		return nil, false, err
	}
	process := recording.Process{PID: pid, Parent: parentOf(pid), Name: session.tracee.target.Comm}
	f.note(pid, session.tracee.target.Command())
	defer f.note(pid, "")
	if err := session.Wait(f.context); err != nil {
		return nil, false, err
	}
	again = session.exited && session.tracee.target.Alive()
	// The end of the whole trace must not keep the child's part from being read.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.context), time.Minute)
	defer cancel()
	rec, err := session.Record(ctx)
	if err != nil {
		return nil, false, err
	}
	return &tracedChild{process, rec}, again, nil
}

// note says what program of a child is traced now; "" for none any more.
func (f *forkFamily) note(pid int, program string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if program == "" {
		delete(f.traced, pid)
		return
	}
	f.traced[pid] = program
}

func (f *forkFamily) miss(note func(*missedChildren)) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	note(&f.lost)
}

// missFor counts a child that could not be traced, by the reason.
func (f *forkFamily) missFor(pid int, err error) {
	var refusal *target.Refusal
	ended := !processRuns(pid) || f.context.Err() != nil
	f.miss(func(m *missedChildren) {
		if ended || !errors.As(err, &refusal) {
			m.short++
			return
		}
		m.refused++
		if m.reason == nil {
			m.reason = err
		}
	})
}

// processRuns tells whether there is a process of that number that has not ended.
func processRuns(pid int) bool {
	t, err := target.Look(pid)
	if err != nil {
		return false
	}
	t.Close()
	return true
}

// statusNumber finds a number in a /proc/PID/status, 0 when it is not there.
func statusNumber(status []byte, key string) int {
	for line := range bytes.Lines(status) {
		if rest, found := bytes.CutPrefix(line, []byte(key)); found {
			number, _ := strconv.Atoi(string(bytes.TrimSpace(rest)))
			return number
		}
	}
	return 0
}
