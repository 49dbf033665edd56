package target

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Namespaces is which of the process's namespaces differ from this program's own, and the
// identity of each (the inode number of /proc/PID/ns/…).
type Namespaces struct {
	PID, Mount, User, Net uint64
	// Foreign names those that are not this program's: "pid", "mnt", "user", "net".
	Foreign []string
}

const (
	kernelThreadFlag = 0x00200000 // PF_KTHREAD of linux/sched.h
	clockTicks       = 100        // USER_HZ: the unit of times in /proc/PID/stat
	maxText          = 1 << 20    // bytes read of one small /proc file
)

// identify fills in what /proc says about the process and refuses what is no program.
func (t *Target) identify() error {
	text, err := t.read("stat", 4096)
	if err != nil {
		return t.readRefusal(err)
	}
	stat, err := parseStat(text)
	if err != nil {
		return fmt.Errorf("read /proc/%d/stat: %w", t.PID, err)
	}
	switch {
	case stat.flags&kernelThreadFlag != 0:
		return refuse("trace a program instead", "process %d (%s) is a kernel thread", t.PID, stat.comm)
	case stat.state == 'Z' || stat.state == 'X':
		return refuse("its parent has not collected it; there is nothing left to trace", "process %d (%s) is a zombie", t.PID, stat.comm)
	}
	t.Comm, t.Threads, t.StartTicks = stat.comm, stat.threads, stat.start
	t.Stopped = stat.state == 'T' || stat.state == 't'
	t.Started = bootTime().Add(time.Duration(stat.start) * time.Second / clockTicks)
	if err := t.readStatus(); err != nil {
		return err
	}
	if cmdline, err := t.read("cmdline", maxText); err == nil {
		for _, arg := range bytes.Split(bytes.TrimRight(cmdline, "\x00"), []byte{0}) {
			if len(cmdline) > 0 {
				t.Args = append(t.Args, string(arg))
			}
		}
	}
	if cgroup, err := t.read("cgroup", maxText); err == nil {
		t.Container = parseContainer(string(cgroup))
	}
	t.rootPath, _ = t.readlink("root")
	if exe, err := t.readlink("exe"); err == nil {
		t.Exe = t.ownPath(strings.TrimSuffix(exe, " (deleted)"))
	} else if errors.Is(err, os.ErrPermission) {
		return t.readRefusal(err)
	}
	if t.is32Bit() {
		return refuse("only 64-bit programs can be traced", "process %d (%s) is a 32-bit program", t.PID, t.Comm)
	}
	t.readNamespaces()
	if t.root, err = t.openRoot(); err != nil {
		return t.readRefusal(err)
	}
	return nil
}

// readStatus takes the fields of /proc/PID/status that are needed; a process id that is a
// thread of another process is refused with that process's number.
func (t *Target) readStatus() error {
	text, err := t.read("status", maxText)
	if err != nil {
		return t.readRefusal(err)
	}
	leader := t.PID
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		if len(fields) == 0 {
			continue
		}
		first, _ := strconv.Atoi(fields[0])
		switch key {
		case "Tgid":
			leader = first
		case "Uid":
			t.UID = first
		case "TracerPid":
			t.TracerPID = first
		case "Seccomp":
			t.SeccompMode = first
		case "NSpid":
			for _, field := range fields {
				if pid, err := strconv.Atoi(field); err == nil {
					t.PIDs = append(t.PIDs, pid)
				}
			}
		}
	}
	if leader != t.PID {
		return refuse(fmt.Sprintf("use --pid %d", leader), "%d is a thread of process %d", t.PID, leader)
	}
	return nil
}

// readNamespaces compares the namespaces with this program's own.
func (t *Target) readNamespaces() {
	for _, ns := range []struct {
		name string
		id   *uint64
	}{{"pid", &t.Namespaces.PID}, {"mnt", &t.Namespaces.Mount}, {"user", &t.Namespaces.User}, {"net", &t.Namespaces.Net}} {
		link, err := t.readlink("ns/" + ns.name)
		if err != nil {
			continue
		}
		if own, err := os.Readlink("/proc/self/ns/" + ns.name); err == nil && own != link {
			t.Namespaces.Foreign = append(t.Namespaces.Foreign, ns.name)
		}
		_, number, _ := strings.Cut(strings.TrimSuffix(link, "]"), "[")
		*ns.id, _ = strconv.ParseUint(number, 10, 64)
	}
}

// procStat is what is needed of /proc/PID/stat.
type procStat struct {
	comm    string
	state   byte
	flags   uint64
	threads int
	start   uint64
}

// parseStat reads a line of /proc/PID/stat (proc_pid_stat(5)). The name may hold anything,
// so the fields are counted from the last parenthesis.
func parseStat(text []byte) (procStat, error) {
	open, closing := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || closing < open {
		return procStat{}, errors.New("no name in parentheses")
	}
	fields := strings.Fields(string(text[closing+1:]))
	if len(fields) < 20 {
		return procStat{}, fmt.Errorf("%d fields after the name, want 20 or more", len(fields))
	}
	s := procStat{comm: string(text[open+1 : closing]), state: fields[0][0]}
	s.flags, _ = strconv.ParseUint(fields[6], 10, 64)
	s.threads, _ = strconv.Atoi(fields[17])
	s.start, _ = strconv.ParseUint(fields[19], 10, 64)
	return s, nil
}

// bootTime is when the clock that start times count from was 0.
func bootTime() time.Time {
	var sinceBoot unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &sinceBoot) != nil {
		return time.Now()
	}
	return time.Now().Add(-time.Duration(sinceBoot.Nano()))
}

// read returns at most limit bytes of a file of the process's /proc directory.
func (t *Target) read(name string, limit int64) ([]byte, error) {
	f, err := t.openProc(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// openProc opens a file of the process's /proc directory.
func (t *Target) openProc(name string, flags int) (*os.File, error) {
	if t.proc == nil {
		return nil, os.ErrClosed
	}
	fd, err := unix.Openat(int(t.proc.Fd()), name, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: fmt.Sprintf("/proc/%d/%s", t.PID, name), Err: err}
	}
	return os.NewFile(uintptr(fd), fmt.Sprintf("/proc/%d/%s", t.PID, name)), nil
}

// readlink reads a link of the process's /proc directory.
func (t *Target) readlink(name string) (string, error) {
	if t.proc == nil {
		return "", os.ErrClosed
	}
	buffer := make([]byte, 4096)
	n, err := unix.Readlinkat(int(t.proc.Fd()), name, buffer)
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
}

// readRefusal says why something of the process could not be read.
func (t *Target) readRefusal(err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ESRCH):
		return refuse("give the number of a running process", "process %d has ended", t.PID)
	case errors.Is(err, os.ErrPermission):
		return refuse("run as root, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH", "no permission to read process %d", t.PID)
	}
	return fmt.Errorf("read process %d: %w", t.PID, err)
}

// is32Bit tells whether the process runs a 32-bit program: its executable says so.
func (t *Target) is32Bit() bool {
	exe, err := t.openProc("exe", os.O_RDONLY)
	if err != nil {
		return false
	}
	defer exe.Close()
	header := make([]byte, 5)
	_, err = io.ReadFull(exe, header)
	return err == nil && string(header) == "\x7fELF\x01"
}
