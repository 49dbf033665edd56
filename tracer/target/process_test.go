package target

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"memtrace/internal/workload"
)

func hexadecimal(n uint64) string { return fmt.Sprintf("%#x", n) }

// copyFile copies a file and its permissions.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	source, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(target, source); err != nil {
		t.Fatal(err)
	}
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
}

// libc is the C library that this machine's programs use.
func libc() string { return filepath.Join(libraryDirectory(), "libc.so.6") }

func TestDeletedLibrary(t *testing.T) {
	for name, replace := range map[string]bool{"deleted": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			library := filepath.Join(t.TempDir(), "libc.so.6")
			copyFile(t, libc(), library)
			process := workload.StartCommand(t, withEnvironment(exec.Command(workload.Build(t, "calls.c")), "LD_LIBRARY_PATH="+filepath.Dir(library)))
			process.Expect(t, "ready")
			if err := os.Remove(library); err != nil {
				t.Fatal(err)
			}
			if replace {
				if err := os.WriteFile(library, []byte("another file"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			opened := open(t, process.PID())
			expectAllocator(t, opened, "glibc", "2.")
			if !opened.Allocator.Mapping.Deleted || opened.Allocator.Path != library {
				t.Errorf("path %q, deleted %v", opened.Allocator.Path, opened.Allocator.Mapping.Deleted)
			}
		})
	}
}

func withEnvironment(command *exec.Cmd, variables ...string) *exec.Cmd {
	command.Env = append(os.Environ(), variables...)
	return command
}

func TestOtherNamespacesAndRoot(t *testing.T) {
	root := t.TempDir()
	program := workload.Build(t, "calls.c")
	copyFile(t, program, filepath.Join(root, "calls"))
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range strings.Fields(string(out)) {
		if strings.HasPrefix(field, "/") {
			copyFile(t, field, filepath.Join(root, field))
		}
	}
	command := exec.Command("/calls")
	command.SysProcAttr = &syscall.SysProcAttr{
		Chroot:      root,
		Cloneflags:  unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	command.Dir = "/"
	process := workload.StartCommand(t, command)
	process.Expect(t, "ready")
	opened := open(t, process.PID())
	expectAllocator(t, opened, "glibc", "2.")
	if opened.InnerPID() != 1 || opened.PID == 1 {
		t.Errorf("process ids %v, want the last to be 1", opened.PIDs)
	}
	if got := strings.Join(opened.Namespaces.Foreign, " "); got != "pid mnt user net" {
		t.Errorf("foreign namespaces %q", got)
	}
	// The file is the one in the other root, not this machine's.
	file, err := opened.OpenMapped(opened.Allocator.Mapping)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	inside, err := os.Stat(filepath.Join(root, opened.Allocator.Path))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := file.Stat(); err != nil || !os.SameFile(got, inside) {
		t.Errorf("opened another file than %s: %v", inside.Name(), err)
	}
}

// TestLinksDoNotLeadOut: a link in the target's root is resolved there.
func TestLinksDoNotLeadOut(t *testing.T) {
	root := t.TempDir()
	program := workload.Build(t, "calls.c", "-static")
	copyFile(t, program, filepath.Join(root, "calls"))
	if err := os.WriteFile(filepath.Join(root, "secret"), []byte("inside"), 0o644); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"absolute": "/secret", "out": secret, "up": "../../../../../../.." + secret} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(root, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("/calls")
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	command.Dir = "/"
	process := workload.StartCommand(t, command)
	process.Expect(t, "ready")
	opened := open(t, process.PID())
	file, err := opened.OpenBeneath("/absolute")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if content, _ := io.ReadAll(file); string(content) != "inside" {
		t.Errorf("read %q, want the file inside", content)
	}
	for _, path := range []string{"/out", "/up", "/pipe", "/"} {
		if f, err := opened.OpenBeneath(path); err == nil {
			f.Close()
			t.Errorf("opened %s", path)
		}
	}
}

func TestStoppedAndTraced(t *testing.T) {
	process := workload.Start(t, workload.Build(t, "calls.c"))
	process.Expect(t, "ready")
	if err := process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		opened, err := Open(t.Context(), process.PID())
		if err != nil {
			t.Fatal(err)
		}
		stopped := opened.Stopped
		opened.Close()
		if stopped {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("never seen as stopped")
		}
	}
}

// TestHeldBeforeItsFirstInstruction: a process that is held in execve has no libraries yet.
func TestHeldBeforeItsFirstInstruction(t *testing.T) {
	command := exec.Command(workload.Build(t, "calls.c"))
	command.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	pid := start(t, command)
	refused(t, pid, "no allocator")
}

func TestAliveUntilKilled(t *testing.T) {
	process := workload.Start(t, workload.Build(t, "calls.c"))
	process.Expect(t, "ready")
	opened := open(t, process.PID())
	if !opened.Alive() {
		t.Error("not alive")
	}
	process.Process.Kill()
	process.Wait()
	if opened.Alive() {
		t.Error("alive although it was killed")
	}
}

func TestSeccompMode(t *testing.T) {
	opened := startCalls(t, nil)
	if opened.SeccompMode != 0 {
		t.Errorf("seccomp mode %d, want 0", opened.SeccompMode)
	}
}

func TestUIDOfAnotherUser(t *testing.T) {
	const nobody = 65534
	program := workload.Build(t, "calls.c")
	for dir := filepath.Dir(program); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command(program)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	process := workload.StartCommand(t, command)
	process.Expect(t, "ready")
	if opened := open(t, process.PID()); opened.UID != nobody {
		t.Errorf("uid %d, want %d", opened.UID, nobody)
	}
}
