// Package target says what a process is: its names, threads, namespaces and mappings, and
// which allocator it really uses and where that lives.
//
// Everything is read through a descriptor of the process's /proc directory, so a process id
// that is given to another process meanwhile never mixes two processes. Files are the
// target's: they are opened beneath its root, without following links out, and every size
// in them is bounded.
package target

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Target is a process that can be traced.
type Target struct {
	PID     int
	Comm    string   // the kernel's name of it, at most 15 bytes
	Args    []string // its command line
	Exe     string   // its executable as it sees it, "" when unknown
	Started time.Time
	// StartTicks is the start in clock ticks since boot, which with the PID names a process
	// for good.
	StartTicks uint64
	Threads    int
	UID        int
	// PIDs is its process id in each namespace, the outermost first; the last is its own.
	PIDs       []int
	Namespaces Namespaces
	// Container is what runs it, such as "docker:4d3f…", "" on the host.
	Container string
	// SeccompMode is 0 (none), 1 (strict) or 2 (filter).
	SeccompMode int
	Stopped     bool // by a signal or a tracer
	TracerPID   int  // of a debugger that is attached, 0 for none
	// Mappings are the executable ones, by address.
	Mappings []Mapping
	// Allocator is the one that malloc leads to.
	Allocator Allocator
	// Others are further allocators in the process with entry points of their own, such as
	// the jemalloc that a Rust program links in under a prefix.
	Others []Allocator
	// Wrappers are files whose malloc only passes calls on.
	Wrappers []string

	proc *os.File // /proc/PID
	root *os.File // its root directory
	// rootPath is where that is as this program sees it, "/" in another mount namespace.
	rootPath string
}

// settling is how long Open waits for a process that changes while it is read, or whose
// dynamic linker has not loaded the libraries yet.
const settling = 2 * time.Second

// Open finds out what the process is. What cannot be traced is refused with a *Refusal.
// The caller closes the target.
func Open(ctx context.Context, pid int) (*Target, error) {
	t, err := Look(pid)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(settling); ; {
		err = t.discover()
		if err == nil {
			return t, nil
		}
		if time.Now().After(deadline) || !errors.Is(err, errChanged) {
			break
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), t.Close())
		case <-time.After(10 * time.Millisecond):
		}
	}
	if gone := t.gone(); gone != nil {
		err = gone
	}
	t.Close()
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return nil, refusal
	}
	return nil, err
}

// Look is Open without the search for an allocator: for doctor, and for reading what needs
// no probe. It refuses what is no live process of this machine's word size.
func Look(pid int) (*Target, error) {
	if pid <= 0 {
		return nil, refuse("give the number of a running process", "%d is no process id", pid)
	}
	proc, err := os.OpenFile(fmt.Sprintf("/proc/%d", pid), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, openRefusal(pid, err)
	}
	t := &Target{PID: pid, proc: proc}
	if err := t.identify(); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Close lets go of the process. It may be called again.
func (t *Target) Close() error {
	var errs []error
	for _, f := range []**os.File{&t.proc, &t.root} {
		if *f != nil {
			errs = append(errs, (*f).Close())
			*f = nil
		}
	}
	return errors.Join(errs...)
}

// Alive tells whether the process still runs.
func (t *Target) Alive() bool { return t.gone() == nil }

// Command is the command line as one line, or the kernel's name where there is none.
func (t *Target) Command() string {
	if len(t.Args) == 0 {
		return t.Comm
	}
	line := ""
	for i, arg := range t.Args {
		if i > 0 {
			line += " "
		}
		line += arg
	}
	return line
}

// InnerPID is the process id as the process itself sees it.
func (t *Target) InnerPID() int {
	if len(t.PIDs) == 0 {
		return t.PID
	}
	return t.PIDs[len(t.PIDs)-1]
}

// gone returns a Refusal when the process has ended.
func (t *Target) gone() error {
	stat, err := t.read("stat", 4096)
	if err == nil {
		if s, parseErr := parseStat(stat); parseErr == nil && s.state != 'Z' && s.state != 'X' {
			return nil
		}
	}
	return refuse("give the number of a running process", "process %d has ended", t.PID)
}

// openRefusal says why a process's directory could not be opened.
func openRefusal(pid int, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return refuse("give the number of a running process, as this PID namespace counts", "no process %d", pid)
	}
	if errors.Is(err, os.ErrPermission) {
		return refuse("run as root", "no permission to look at process %d", pid)
	}
	return fmt.Errorf("look at process %d: %w", pid, err)
}
