// Package launch starts a command and holds it before its first allocation, so that probes
// can be put in, then lets it run as if nothing had happened.
//
// The command is held where the dynamic loader has mapped all libraries and has run none of
// their code: at its first mprotect(…, PROT_READ), with which the loader seals a library's
// relocated data (glibc elf/dl-reloc.c, musl ldso/dynlink.c). A static program is held
// before its first instruction.
package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrEnded means that the command ended before it could be held.
var ErrEnded = errors.New("the command ended before its first allocation")

// Command is a child process: held from Start to Release, then running.
type Command struct {
	process *exec.Cmd
	release chan struct{} // closed: let the command run
	freed   chan error    // the outcome of the release, once
}

// Start starts the command with memtrace's own standard input, output and error, and
// returns when it is held. The caller must call Release or Kill, then Wait.
func Start(ctx context.Context, arguments []string) (*Command, error) {
	path, err := exec.LookPath(arguments[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return nil, notFound(arguments[0], err)
	}
	process := exec.Command(path, arguments[1:]...)
	process.Args[0] = arguments[0]
	process.Stdin, process.Stdout, process.Stderr = os.Stdin, os.Stdout, os.Stderr
	process.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	c := &Command{process: process, release: make(chan struct{}), freed: make(chan error, 1)}
	held := make(chan error, 1)
	go c.hold(ctx, held)
	if err := <-held; err != nil {
		return nil, err
	}
	return c, nil
}

// notFound says which command is missing, and why.
func notFound(name string, err error) error {
	var execError *exec.Error
	if errors.As(err, &execError) && (errors.Is(execError.Err, exec.ErrNotFound) || errors.Is(execError.Err, fs.ErrNotExist)) {
		return fmt.Errorf("no such command: %s", name)
	}
	return fmt.Errorf("start %s: %w", name, err)
}

// hold starts the command and traces it until it is released. The kernel wants every
// ptrace request from the thread that began the tracing, so all of it is done here.
func (c *Command) hold(ctx context.Context, held chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := c.process.Start(); err != nil {
		held <- fmt.Errorf("start %s: %w", c.process.Args[0], err)
		return
	}
	if err := runToLibraries(ctx, c.process.Process.Pid); err != nil {
		c.process.Process.Kill()
		c.process.Wait()
		held <- fmt.Errorf("hold %s: %w", c.process.Args[0], err)
		return
	}
	held <- nil
	<-c.release
	c.freed <- unix.PtraceDetach(c.process.Process.Pid)
}

// PID is the command's process id.
func (c *Command) PID() int { return c.process.Process.Pid }

// Release lets the command run; nothing ties it to memtrace any more but that it is its child.
func (c *Command) Release() error {
	close(c.release)
	if err := <-c.freed; err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("let %s run: %w", c.process.Args[0], err)
	}
	return nil
}

// Kill ends a command that was not released. It has run none of its own code.
func (c *Command) Kill() {
	c.process.Process.Kill()
	c.Release()
	c.process.Wait()
}

// Signal hands a signal on to the running command; one that has ended gets none.
func (c *Command) Signal(signal os.Signal) error {
	if err := c.process.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Wait waits for the command's end and returns its exit status as a shell would give it:
// 128 and the signal's number when a signal ended it.
func (c *Command) Wait() (int, error) {
	err := c.process.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, fmt.Errorf("wait for %s: %w", c.process.Args[0], err)
	}
	status, known := c.process.ProcessState.Sys().(syscall.WaitStatus)
	if known && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return c.process.ProcessState.ExitCode(), nil
}
