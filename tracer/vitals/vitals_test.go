package vitals

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAgainstTheKernel compares the reading of this process with what the kernel reports
// through getrusage, before and after.
func TestAgainstTheKernel(t *testing.T) {
	usage := func() syscall.Rusage {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return u
	}
	before := usage()
	v, err := Read(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	after := usage()
	if v.Voluntary > uint64(after.Nvcsw) {
		t.Errorf("%d voluntary switches, getrusage says %d to %d", v.Voluntary, before.Nvcsw, after.Nvcsw)
	}
	if v.RSSBytes == 0 || v.RSSBytes > uint64(after.Maxrss)*1024 {
		t.Errorf("resident %d bytes, getrusage says at most %d KiB", v.RSSBytes, after.Maxrss)
	}
	if v.RSSAnonBytes > v.RSSBytes || v.PSSBytes > v.RSSBytes+4096 {
		t.Errorf("parts larger than the whole: %+v", v)
	}
}

// TestGone reads a process that has ended and one that is a zombie.
func TestGone(t *testing.T) {
	command := exec.Command("true")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	// WNOWAIT leaves it a zombie.
	if err := unix.Waitid(unix.P_PID, command.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(command.Process.Pid); !errors.Is(err, ErrGone) {
		t.Errorf("a zombie: %v", err)
	}
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(command.Process.Pid); !errors.Is(err, ErrGone) {
		t.Errorf("an ended process: %v", err)
	}
}
