package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"memtrace/tracer/launch"
)

// terminate asks a command to end.
const terminate = syscall.SIGTERM

// forwarded are the signals that are meant for the command that memtrace stands in front of.
var forwarded = []os.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT}

// signals ends the trace at the first Ctrl-C and quits at the second.
type signals struct {
	context context.Context // done when the trace shall end
	end     context.CancelFunc
	caught  chan os.Signal
	quit    chan struct{}
	once    sync.Once
	over    atomic.Bool // the trace has ended: the next Ctrl-C quits
}

// watchSignals takes over SIGINT (and, without a command, SIGTERM and SIGHUP): the first
// ends the trace, so that its report is printed; the second ends memtrace at once. With a
// command, other signals are handed on to it, and SIGINT too unless the terminal has sent it
// to both.
func watchSignals(ctx context.Context, command *launch.Command) *signals {
	s := &signals{caught: make(chan os.Signal, 8), quit: make(chan struct{})}
	s.context, s.end = context.WithCancel(ctx)
	if command == nil {
		signal.Notify(s.caught, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	} else {
		signal.Notify(s.caught, append([]os.Signal{syscall.SIGINT}, forwarded...)...)
	}
	go s.serve(command)
	return s
}

func (s *signals) serve(command *launch.Command) {
	for {
		select {
		case <-s.quit:
			return
		case caught := <-s.caught:
			if command != nil && (caught != syscall.SIGINT || !fromTerminal()) {
				// A command that has ended needs no signal.
				_ = command.Signal(caught)
			}
			if command != nil && caught != syscall.SIGINT {
				continue
			}
			if s.over.Swap(true) {
				os.Exit(128 + int(syscall.SIGINT))
			}
			s.end()
		}
	}
}

// fromTerminal tells whether a Ctrl-C at the terminal reaches the command by itself: both
// are in the terminal's foreground group.
func fromTerminal() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer terminal.Close()
	foreground, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && foreground == unix.Getpgrp()
}

// tracingDone says that what follows (collecting, the report) ends with memtrace: a further
// Ctrl-C quits, whatever ended the trace.
func (s *signals) tracingDone() { s.over.Store(true) }

// stop gives the signals back.
func (s *signals) stop() {
	s.once.Do(func() {
		signal.Stop(s.caught)
		close(s.quit)
		s.end()
	})
}
