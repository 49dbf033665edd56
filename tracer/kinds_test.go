package tracer

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"memtrace/internal/workload"
)

// The kinds of processes that people run. Each makes a known number of blocks in the function
// allocate, which an exact trace must count and name.
const (
	kindCalls   = 500
	kindThreads = 4
	kindSize    = 4242
)

// traceCalls traces the workload calls.c, started in some way, through its calls.
func traceCalls(t *testing.T, p *workload.Process, allocator string, meanwhile func()) {
	t.Helper()
	s := startSession(t, Options{PID: p.PID(), Probes: []string{"alloc"}, Exact: true, Round: "none"})
	if name := s.tracee.target.Allocator.Name; name != allocator {
		t.Errorf("the allocator is %s, want %s", name, allocator)
	}
	if meanwhile != nil {
		meanwhile()
	}
	p.Say(t, "500 4")
	p.Expect(t, "done")
	checkCalls(t, s, kindCalls*kindThreads)
}

// checkCalls ends the trace and looks for the calls of the function allocate.
func checkCalls(t *testing.T, s *Session, calls uint64) {
	t.Helper()
	rec := finishSession(t, s)
	var allocs, bytes, frees uint64
	for _, site := range rec.Allocation.Sites {
		if site.Stack[0].Function == "allocate" {
			allocs, bytes, frees = allocs+site.Allocs, bytes+site.AllocBytes, frees+site.Frees
		}
	}
	if allocs != calls || bytes != calls*kindSize || frees != calls {
		t.Errorf("allocate made %d blocks of %d bytes and freed %d, want %d, %d, %d; totals %+v",
			allocs, bytes, frees, calls, calls*kindSize, calls, rec.Allocation.Totals)
	}
	checkLosses(t, rec)
}

// kindLibraries is where Debian keeps the libraries of this architecture.
func kindLibraries() string {
	return "/usr/lib/" + map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH] + "-linux-gnu"
}

// startKind starts calls.c with variables set.
func startKind(t *testing.T, program string, variables ...string) *workload.Process {
	t.Helper()
	command := exec.Command(program)
	command.Env = append(os.Environ(), variables...)
	p := workload.StartCommand(t, command)
	p.Expect(t, "ready")
	return p
}

func TestKindsOfAllocators(t *testing.T) {
	program := workload.Build(t, "calls.c")
	wrapper := workload.Build(t, "wrapper.c", "-shared", "-fPIC", "-ldl")
	for name, preload := range map[string][]string{
		"jemalloc": {"libjemalloc.so.2"},
		"tcmalloc": {"libtcmalloc_minimal.so.4", "libmimalloc.so.2"},
		"mimalloc": {"libmimalloc.so.2"},
	} {
		t.Run(strings.Join(preload, " before "), func(t *testing.T) {
			for i := range preload {
				preload[i] = filepath.Join(kindLibraries(), preload[i])
			}
			traceCalls(t, startKind(t, program, "LD_PRELOAD="+strings.Join(preload, ":")), name, nil)
		})
	}
	t.Run("wrapper", func(t *testing.T) { traceCalls(t, startKind(t, program, "LD_PRELOAD="+wrapper), "glibc", nil) })
	t.Run("static glibc", func(t *testing.T) {
		traceCalls(t, startKind(t, workload.Build(t, "calls.c", "-static")), "glibc", nil)
	})
	for _, linking := range []string{"-dynamic", "-static"} {
		t.Run("musl "+linking, func(t *testing.T) {
			musl := filepath.Join(t.TempDir(), "musl")
			if err := workload.Compile("musl-gcc", musl, "calls.c", linking); err != nil {
				t.Fatal(err)
			}
			traceCalls(t, startKind(t, musl), "musl", nil)
		})
	}
}

// TestReplacedLibraries: the library on the disk is gone, or another one, since the process
// began: an upgrade under a running service.
func TestReplacedLibraries(t *testing.T) {
	program := workload.Build(t, "calls.c")
	for _, kind := range []string{"deleted", "replaced"} {
		t.Run(kind, func(t *testing.T) {
			library := filepath.Join(t.TempDir(), "libc.so.6")
			copyTo(t, filepath.Join(kindLibraries(), "libc.so.6"), library)
			p := startKind(t, program, "LD_LIBRARY_PATH="+filepath.Dir(library))
			if err := os.Remove(library); err != nil {
				t.Fatal(err)
			}
			if kind == "replaced" {
				copyTo(t, filepath.Join(kindLibraries(), "libm.so.6"), library)
			}
			traceCalls(t, p, "glibc", nil)
		})
	}
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestContainer: another root, and PID, mount, user and network namespaces of its own.
func TestContainer(t *testing.T) {
	root := t.TempDir()
	program := workload.Build(t, "calls.c")
	copyTo(t, program, filepath.Join(root, "bin/calls"))
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range strings.Fields(string(out)) {
		if strings.HasPrefix(field, "/") {
			copyTo(t, field, filepath.Join(root, field))
		}
	}
	command := exec.Command("/bin/calls")
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{
		Chroot:      root,
		Cloneflags:  unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	p := workload.StartCommand(t, command)
	p.Expect(t, "ready")
	traceCalls(t, p, "glibc", nil)
}

// TestHeldProcesses: stopped by a signal, and traced by another debugger.
func TestHeldProcesses(t *testing.T) {
	program := workload.Build(t, "calls.c")
	t.Run("stopped", func(t *testing.T) {
		p := startKind(t, program)
		if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		traceCalls(t, p, "glibc", func() {
			if err := p.Process.Signal(syscall.SIGCONT); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("under ptrace", func(t *testing.T) {
		p := startKind(t, program)
		seized := make(chan error, 1)
		go debug(p.PID(), seized)
		if err := <-seized; err != nil {
			t.Fatal(err)
		}
		traceCalls(t, p, "glibc", nil)
	})
}

// debug attaches to a process as a debugger does, tells whether it could, and lets the process
// go on at every stop, until it ends. The kernel wants all of this from one thread.
func debug(pid int, seized chan<- error) {
	runtime.LockOSThread()
	err := unix.PtraceSeize(pid)
	seized <- err
	for err == nil {
		var status unix.WaitStatus
		if _, err = unix.Wait4(pid, &status, unix.WALL, nil); err == nil && status.Stopped() {
			err = unix.PtraceCont(pid, int(status.StopSignal()))
		}
		if status.Exited() || status.Signaled() {
			return
		}
	}
}

// TestSetuidProcess: an executable that nobody may read and that changes the user it runs as
// makes a process that is not dumpable.
func TestSetuidProcess(t *testing.T) {
	const nobody = 65534
	directory, err := os.MkdirTemp("", "memtrace-setuid")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	program := filepath.Join(directory, "calls")
	copyTo(t, workload.Build(t, "calls.c"), program)
	const setuidUnreadable = 0o111 | os.ModeSetuid
	for _, err := range []error{os.Chmod(directory, 0o755), os.Chown(program, nobody, nobody), os.Chmod(program, setuidUnreadable)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	traceCalls(t, startKind(t, program), "glibc", nil)
}

// TestConfinedProcess: a process that its seccomp filter kills for any unusual system call
// lives on, with return probes or without.
func TestConfinedProcess(t *testing.T) {
	p := startKind(t, workload.Build(t, "confined.c"))
	s := startSession(t, Options{PID: p.PID(), Probes: []string{"alloc"}, Exact: true, Round: "none"})
	if s.tracee.target.SeccompMode != 2 {
		t.Errorf("Seccomp: %d", s.tracee.target.SeccompMode)
	}
	p.Say(t, "300")
	p.Expect(t, "done")
	rec := finishSession(t, s)
	var allocs uint64
	for _, site := range rec.Allocation.Sites {
		if site.Stack[0].Function == "allocate" {
			allocs += site.Allocs
		}
	}
	if allocs != 300 {
		t.Errorf("allocate made %d blocks, want 300; notes %q", allocs, rec.Notes)
	}
}

// TestThreadStorm: thousands of threads that start and end are all counted.
func TestThreadStorm(t *testing.T) {
	const threads = 3000
	p := workload.Start(t, workload.Build(t, "threadstorm.c"), "3000")
	p.Expect(t, "ready")
	s := startSession(t, Options{PID: p.PID(), Probes: []string{"alloc"}, Exact: true, Round: "none"})
	p.Say(t, "")
	p.Expect(t, "done")
	rec := finishSession(t, s)
	var allocs uint64
	workers := 0
	for _, site := range rec.Allocation.Sites {
		if site.Stack[0].Function == "storm_worker" {
			allocs += site.Allocs
			workers += len(site.Threads)
		}
	}
	if allocs != threads*10 || workers == 0 {
		t.Errorf("%d blocks by %d threads, want %d", allocs, workers, threads*10)
	}
	if rec.Losses.ThreadsLost != 0 || len(rec.Allocation.Threads) < threads {
		t.Errorf("%d threads, lost: %+v", len(rec.Allocation.Threads), rec.Losses)
	}
}
