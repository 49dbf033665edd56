package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/workload"
	"memtrace/tracer/recording"
)

// examine runs memtrace doctor for JSON.
func examine(t *testing.T, command *exec.Cmd) (*recording.Checkup, outcome) {
	t.Helper()
	got := run(t, command)
	c := &recording.Checkup{}
	if err := json.Unmarshal([]byte(got.stdout), c); err != nil {
		t.Fatalf("%v: status %d\n%s\n%s", err, got.status, got.stdout, got.stderr)
	}
	return c, got
}

// capability finds the one of that name.
func capability(t *testing.T, c *recording.Checkup, name string) recording.Capability {
	t.Helper()
	for _, capability := range c.Capabilities {
		if capability.Name == name {
			return capability
		}
	}
	t.Fatalf("no capability %q in %+v", name, c.Capabilities)
	return recording.Capability{}
}

func TestDoctorOnThisMachine(t *testing.T) {
	c, got := examine(t, memtrace(t, "doctor", "--format", "json"))
	if got.status != 0 || !c.Traceable || c.PID != 0 || c.Kernel == "" {
		t.Errorf("status %d, %+v\n%s", got.status, c, got.stderr)
	}
	for _, name := range []string{"BPF", "BTF", "uprobes", "CAP_BPF", "host's PID namespace"} {
		if !capability(t, c, name).Available {
			t.Errorf("%s: %+v", name, capability(t, c, name))
		}
	}
	for _, capability := range c.Capabilities {
		if !capability.Available && capability.Next == "" {
			t.Errorf("says no without saying what to do: %+v", capability)
		}
	}
}

func TestDoctorOnProcess(t *testing.T) {
	program := workload.Build(t, "ticker.c")
	p := workload.Start(t, program)
	p.Expect(t, "ready")
	c, got := examine(t, memtrace(t, "doctor", "-f", "json", "--pid", fmt.Sprint(p.PID())))
	if got.status != 0 || !c.Traceable || c.PID != p.PID() {
		t.Errorf("status %d\n%s", got.status, got.stderr)
	}
	for name, words := range map[string][]string{
		"allocator": {"glibc", "libc.so.6"},
		"heap":      {"main_arena"},
		"stacks through " + filepath.Base(program): {"call frame information"},
		"names in " + filepath.Base(program):       {"symbol table, with lines"},
		"seccomp":                                  {"no filter"},
	} {
		found := capability(t, c, name)
		for _, word := range words {
			if !found.Available || !strings.Contains(found.Detail, word) {
				t.Errorf("%s lacks %q: %+v", name, word, found)
			}
		}
	}
	if found := capability(t, c, "probe on malloc"); !found.Available || !strings.HasPrefix(found.Detail, "+") {
		t.Errorf("where the probe goes: %+v", found)
	}
	text := run(t, memtrace(t, "doctor", "--pid", fmt.Sprint(p.PID())))
	if !strings.HasPrefix(text.stdout, "memtrace can trace this process") {
		t.Errorf("the text begins with %.80q", text.stdout)
	}
	for line := range strings.Lines(text.stdout) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestDoctorSaysNo: what cannot be traced is a line that says what to do, and status 3.
func TestDoctorSaysNo(t *testing.T) {
	oneLine(t, run(t, memtrace(t, "doctor", "--pid", "4194303")), 3, "no process")
	program := workload.Build(t, "ticker.c", "-static", "-s")
	p := workload.Start(t, program)
	p.Expect(t, "ready")
	c, got := examine(t, memtrace(t, "doctor", "-f", "json", "--pid", fmt.Sprint(p.PID())))
	if found := capability(t, c, "allocator"); found.Available || found.Next == "" || c.Traceable || got.status != 3 {
		t.Errorf("status %d, %+v", got.status, found)
	}
	oneLine(t, run(t, memtrace(t, "doctor", "--pid", "0")), 2, "--pid")
	oneLine(t, run(t, memtrace(t, "doctor", "now")), 2, "unexpected word")
	oneLine(t, run(t, memtrace(t, "doctor", "-f", "svg")), 2, "--format")
}

// TestNestedPIDNamespace: in a PID namespace of its own memtrace would see nothing. It says so.
func TestNestedPIDNamespace(t *testing.T) {
	for _, arguments := range [][]string{{"--", "true"}, {"--pid", "2"}} {
		inner := memtrace(t, arguments...)
		command := exec.Command("unshare", append([]string{"--pid", "--fork", "--mount-proc", inner.Path}, arguments...)...)
		command.Env = inner.Env
		oneLine(t, run(t, command), 3, "PID namespace", "--pid=host")
	}
}
