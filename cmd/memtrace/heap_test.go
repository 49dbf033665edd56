package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/workload"
	"memtrace/tracer/recording"
)

// memtraceHeap runs the subcommand and returns what it wrote and its exit status.
func memtraceHeap(arguments ...string) (stdout, stderr string, status int) {
	var out, problems bytes.Buffer
	e := &environment{stdout: &out, stderr: &problems}
	status = e.run(context.Background(), append([]string{"heap"}, arguments...))
	return out.String(), problems.String(), status
}

func heapTarget(t *testing.T, commands ...string) *workload.Process {
	t.Helper()
	p := workload.Start(t, workload.Build(t, "heapshape.c"))
	p.Expect(t, "ready")
	for _, line := range commands {
		p.Say(t, line)
		p.Expect(t, "ok")
	}
	return p
}

func TestHeapCommand(t *testing.T) {
	p := heapTarget(t, "threads 3 2000", "pins 2000 9000")
	text, problems, status := memtraceHeap("--pid", fmt.Sprint(p.PID()))
	if status != 0 || problems != "" {
		t.Fatalf("status %d, %s", status, problems)
	}
	first, _, _ := strings.Cut(text, "\n")
	if !strings.Contains(first, "live") || !strings.Contains(first, "in 4 arenas; malloc_trim would return") {
		t.Errorf("the first line is %q", first)
	}
	document, _, status := memtraceHeap("--pid", fmt.Sprint(p.PID()), "--format", "json", "--freeze")
	var h recording.Heap
	if err := json.Unmarshal([]byte(document), &h); status != 0 || err != nil {
		t.Fatalf("status %d, %v in %s", status, err, document)
	}
	if !h.Consistent || !h.Frozen || len(h.Arenas) != 4 || h.Context.PID != p.PID() {
		t.Errorf("heap %+v", h)
	}
}

func TestHeapInterval(t *testing.T) {
	p := heapTarget(t)
	text, problems, status := memtraceHeap("--pid", fmt.Sprint(p.PID()), "--format", "json", "--interval", "1ms", "--duration", "3s")
	if status != 0 {
		t.Fatalf("status %d, %s", status, problems)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines {
		var h recording.Heap
		if err := json.Unmarshal([]byte(line), &h); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
	}
	if len(lines) < 2 {
		t.Errorf("%d readings in three seconds", len(lines))
	}
}

func TestHeapUsage(t *testing.T) {
	for line, want := range map[string]int{
		"":                                   statusUsage,
		"--pid x":                            statusUsage,
		"--pid 0":                            statusUsage,
		"--pid 1 extra":                      statusUsage,
		"--pid 1 --format folded":            statusUsage,
		"--pid 1 --interval 0s":              statusUsage,
		"--pid 1 --top 0":                    statusUsage,
		"--pid 1 --no-such-flag":             statusUsage,
		"--pid 4194305":                      statusUntraceable,
		"--help":                             0,
		"--pid 1 --freeze-limit -1s":         statusUsage,
		"--pid 1 -o heap.svg":                statusUsage,
		"--pid 1 -o heap.json --interval 1s": statusUsage,
	} {
		_, problems, status := memtraceHeap(strings.Fields(line)...)
		if status != want {
			t.Errorf("memtrace heap %s: status %d, want %d: %s", line, status, want, problems)
		}
		if status != 0 && strings.Count(strings.TrimSpace(problems), "\n") != 0 {
			t.Errorf("memtrace heap %s: more than a line: %q", line, problems)
		}
	}
}

// A program without glibc is refused with one line.
func TestHeapRefusesOtherAllocators(t *testing.T) {
	directory := t.TempDir()
	source, program := filepath.Join(directory, "bare.c"), filepath.Join(directory, "bare")
	if err := os.WriteFile(source, []byte("void _start(void) { for (;;) __asm__ volatile(\"\"); }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-static", "-nostdlib", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	p := workload.Start(t, program)
	_, problems, status := memtraceHeap("--pid", fmt.Sprint(p.PID()))
	if status != statusUntraceable || strings.Count(problems, "\n") != 1 {
		t.Errorf("status %d, %q", status, problems)
	}
}

func TestHeapFiles(t *testing.T) {
	p := heapTarget(t, "pins 100 9000")
	directory := t.TempDir()
	asJSON, asText := filepath.Join(directory, "heap.json"), filepath.Join(directory, "heap.txt")
	text, problems, status := memtraceHeap("--pid", fmt.Sprint(p.PID()), "-o", asJSON, "-o", asText)
	if status != 0 {
		t.Fatalf("status %d, %s", status, problems)
	}
	written, err := os.ReadFile(asText)
	if err != nil || string(written) != text {
		t.Errorf("the file differs from standard output (%v):\n%s", err, written)
	}
	document, err := os.ReadFile(asJSON)
	if err != nil {
		t.Fatal(err)
	}
	var h recording.Heap
	if err := json.Unmarshal(document, &h); err != nil || h.Context.PID != p.PID() {
		t.Errorf("heap of process %d, %v", h.Context.PID, err)
	}
}
