package tracer

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"memtrace/tracer/target"
)

// exitWatch tells when a process has exited: a descriptor of it becomes readable then,
// which the number of a process, given away again, cannot pretend.
type exitWatch struct {
	ended   chan struct{} // closed when the process has exited
	done    chan struct{} // closed when the watch has ended
	process int
	wake    int // eventfd: written to end the watch
}

// watchExit begins to watch a process.
func watchExit(pid int) (*exitWatch, error) {
	process, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil, &target.Refusal{Reason: fmt.Sprintf("process %d has ended", pid), Next: "give the number of a running process"}
	}
	if err != nil {
		return nil, fmt.Errorf("watch process %d: %w", pid, err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch process %d: %w", pid, err), unix.Close(process))
	}
	w := &exitWatch{ended: make(chan struct{}), done: make(chan struct{}), process: process, wake: wake}
	go w.watch()
	return w, nil
}

func (w *exitWatch) watch() {
	defer close(w.done)
	for {
		descriptors := []unix.PollFd{{Fd: int32(w.process), Events: unix.POLLIN}, {Fd: int32(w.wake), Events: unix.POLLIN}}
		_, err := unix.Poll(descriptors, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && descriptors[0].Revents != 0 {
			close(w.ended)
		}
		return
	}
}

// close ends the watch.
func (w *exitWatch) close() error {
	one := []byte{1, 0, 0, 0, 0, 0, 0, 0}
	_, err := unix.Write(w.wake, one)
	<-w.done
	return errors.Join(err, unix.Close(w.wake), unix.Close(w.process))
}
