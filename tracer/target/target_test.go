package target

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"memtrace/internal/workload"
	"memtrace/tracer/probe"
)

// start runs a program until the test ends and waits until it has executed: /proc/PID/exe
// is then the program, not the test.
func start(t *testing.T, command *exec.Cmd) int {
	t.Helper()
	return workload.StartCommand(t, command).PID()
}

// open opens the process as a target that is closed with the test.
func open(t *testing.T, pid int) *Target {
	t.Helper()
	opened, err := Open(t.Context(), pid)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { opened.Close() })
	return opened
}

// refused opens the process, expects a Refusal, and checks that its text holds every word.
func refused(t *testing.T, pid int, words ...string) {
	t.Helper()
	opened, err := Open(t.Context(), pid)
	if err == nil {
		opened.Close()
		t.Fatalf("opened process %d (%s), want a refusal", pid, opened.Comm)
	}
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("error %v is no refusal", err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("refusal %q does not say %q", err, word)
		}
	}
	if refusal.Next == "" {
		t.Errorf("refusal %q does not say what to do", err)
	}
}

func TestOpenOrdinaryProcess(t *testing.T) {
	pid := start(t, exec.Command("sleep", "600"))
	opened := open(t, pid)
	if opened.Comm != "sleep" || opened.Command() != "sleep 600" || opened.Threads != 1 || opened.UID != os.Getuid() {
		t.Errorf("got %q %q, %d threads, uid %d", opened.Comm, opened.Command(), opened.Threads, opened.UID)
	}
	a := opened.Allocator
	if a.Name != "glibc" || !strings.HasPrefix(a.Version, "2.") {
		t.Errorf("allocator %q %q", a.Name, a.Version)
	}
	malloc, ok := a.Find("malloc")
	if !ok || malloc.Does != probe.Malloc || malloc.Address < a.Mapping.Start || malloc.Address >= a.Mapping.End {
		t.Errorf("malloc %+v outside %x-%x", malloc, a.Mapping.Start, a.Mapping.End)
	}
	for _, name := range []string{"calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc", "memalign",
		"valloc", "pvalloc", "free", "malloc_trim", "mallopt"} {
		if _, ok := a.Find(name); !ok {
			t.Errorf("no entry %s", name)
		}
	}
}
