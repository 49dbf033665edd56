package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"memtrace/internal/workload"
)

// needed are the capabilities that a trace of another user's process needs.
var needed = []string{"bpf", "perfmon", "sys_ptrace", "dac_read_search"}

// nobody is a user without any privilege.
const nobody = 65534

// publicMemtrace builds memtrace as it is released, where every user may run it.
func publicMemtrace(t *testing.T) string {
	t.Helper()
	directory, err := os.MkdirTemp("", "memtrace-public")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	if err := os.Chmod(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(directory, "memtrace")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// asNobody prepares a run as another user with these capabilities and no other.
func asNobody(capabilities []string, program string, arguments ...string) *exec.Cmd {
	set := "-all"
	for _, name := range capabilities {
		set += ",+" + name
	}
	words := []string{"--reuid", fmt.Sprint(nobody), "--regid", fmt.Sprint(nobody), "--clear-groups",
		"--inh-caps=" + set, "--ambient-caps=" + set, "--bounding-set=" + set, program}
	return exec.Command("setpriv", append(words, arguments...)...)
}

// TestLeastPrivilege: four capabilities are enough for a process of another user, and each
// that is missing is a refusal in one line.
func TestLeastPrivilege(t *testing.T) {
	program := publicMemtrace(t)
	ticker := workload.Start(t, workload.Build(t, "ticker.c"))
	ticker.Expect(t, "ready")
	arguments := []string{"--pid", fmt.Sprint(ticker.PID()), "--duration", "1s", "-q"}
	// Mounts tracefs where it is missing, which takes more than these capabilities.
	if root := run(t, exec.Command(program, "-q", "--", "true")); root.status != 0 {
		t.Fatalf("as root: status %d\n%s", root.status, root.stderr)
	}
	got := run(t, asNobody(needed, program, arguments...))
	if got.status != 0 || !strings.Contains(got.stdout, "new blocks") {
		t.Errorf("with %v: status %d\n%s", needed, got.status, got.stderr)
	}
	for i, missing := range needed {
		t.Run("without "+missing, func(t *testing.T) {
			fewer := slices.Delete(slices.Clone(needed), i, i+1)
			oneLine(t, run(t, asNobody(fewer, program, arguments...)), statusUntraceable, "CAP_")
		})
	}
}

// TestDeletedLibraryNeedsCheckpointRestore: files without a name are reached through
// map_files alone, which wants one capability more.
func TestDeletedLibraryNeedsCheckpointRestore(t *testing.T) {
	program := publicMemtrace(t)
	p := workload.Start(t, workload.Build(t, "ticker.c", "-static"))
	p.Expect(t, "ready")
	if err := os.Remove(p.Path); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"--pid", fmt.Sprint(p.PID()), "--duration", "1s", "-q", "--probes", "alloc"}
	oneLine(t, run(t, asNobody(needed, program, arguments...)), statusUntraceable, "CAP_CHECKPOINT_RESTORE")
	got := run(t, asNobody(append(slices.Clone(needed), "checkpoint_restore"), program, arguments...))
	if got.status != 0 || !strings.Contains(got.stdout, "new blocks") {
		t.Errorf("status %d\n%s", got.status, got.stderr)
	}
}

// TestPrivilegesAreDropped: while it traces, root's memtrace has kept only what it needs, in
// all of its threads.
func TestPrivilegesAreDropped(t *testing.T) {
	program := publicMemtrace(t)
	ticker := workload.Start(t, workload.Build(t, "ticker.c"))
	ticker.Expect(t, "ready")
	ready := filepath.Join(t.TempDir(), "ready")
	command := exec.Command(program, "--pid", fmt.Sprint(ticker.PID()), "-q", "--ready-file", ready)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, ready)
	const allowed = 1<<unix.CAP_BPF | 1<<unix.CAP_PERFMON | 1<<unix.CAP_SYS_PTRACE | 1<<unix.CAP_DAC_READ_SEARCH |
		1<<unix.CAP_CHECKPOINT_RESTORE | 1<<unix.CAP_KILL
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", command.Process.Pid))
	if err != nil || len(tasks) == 0 {
		t.Fatalf("threads of memtrace: %v, %v", tasks, err)
	}
	for _, task := range tasks {
		status, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for line := range strings.Lines(string(status)) {
			name, value, _ := strings.Cut(line, ":")
			bits, _ := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			if (name == "CapEff" || name == "CapPrm") && (bits == 0 || bits&^uint64(allowed) != 0) {
				t.Errorf("%s: %s is %#x, allowed are %#x", task, name, bits, uint64(allowed))
			}
		}
	}
	if err := command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("memtrace: %v", err)
	}
}
