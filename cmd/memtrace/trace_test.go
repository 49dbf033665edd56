package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"memtrace/internal/workload"
	"memtrace/tracer/recording"
)

// readRecording reads what -o wrote.
func readRecording(t *testing.T, path string) *recording.Recording {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rec := &recording.Recording{}
	if err := json.Unmarshal(content, rec); err != nil {
		t.Fatal(err)
	}
	return rec
}

// TestCommandIsItsOwn: what a command reads and writes and how it ends is as without memtrace.
func TestCommandIsItsOwn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.json")
	command := memtrace(t, "-f", "folded", "-o", file, "--", "sh", "-c", "read line; echo \"out $line\"; echo err >&2; exit 7")
	command.Stdin = strings.NewReader("from outside\n")
	got := run(t, command)
	if got.status != 7 || !strings.HasPrefix(got.stdout, "out from outside\n") || got.stderr != "err\n" {
		t.Errorf("status %d, output %q, errors %q", got.status, got.stdout, got.stderr)
	}
	if rec := readRecording(t, file); !rec.Target.Exited || rec.Allocation.Totals.Allocs == 0 {
		t.Errorf("target %+v, totals %+v", rec.Target, rec.Allocation.Totals)
	}
}

func TestCommandEndedBySignal(t *testing.T) {
	got := run(t, memtrace(t, "--", "sh", "-c", "kill -KILL $$"))
	if got.status != 128+9 {
		t.Errorf("status %d, want 137\n%s", got.status, got.stderr)
	}
}

// TestFirstAllocation: what a constructor allocates, before main, is seen.
func TestFirstAllocation(t *testing.T) {
	for _, linking := range []string{"-Wl,-z,lazy", "-static"} {
		file := filepath.Join(t.TempDir(), "run.json")
		program := workload.Build(t, "firstalloc.c", linking)
		if got := run(t, memtrace(t, "--exact", "-o", file, "--", program)); got.status != 0 {
			t.Fatalf("status %d\n%s", got.status, got.stderr)
		}
		var found *recording.Site
		rec := readRecording(t, file)
		for i, site := range rec.Allocation.Sites {
			if site.Stack[0].Function == "make_first_block" {
				found = &rec.Allocation.Sites[i]
			}
		}
		if found == nil || found.Allocs != 1 || found.AllocBytes != 12345 || found.LiveBytes != 12345 {
			t.Errorf("%s: the constructor's block: %+v", linking, found)
		}
	}
}

// TestSignalsReachTheCommand: memtrace stands in front of its command.
func TestSignalsReachTheCommand(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	command := memtrace(t, "--", "sh", "-c", "trap 'exit 9' TERM; echo up > "+ready+"; while :; do sleep 0.05; done")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, ready)
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	command.Wait()
	if status := command.ProcessState.ExitCode(); status != 9 {
		t.Errorf("status %d, want the command's 9", status)
	}
}

// TestExecutedProgram: a command that becomes another program is traced up to there, and
// stays its own after that.
func TestExecutedProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.json")
	const script = "import os; os.execv('/bin/sh', ['sh', '-c', 'sleep 2.5; exit 4'])"
	got := run(t, memtrace(t, "--exact", "-q", "-o", file, "--", "/usr/bin/python3", "-c", script))
	if got.status != 4 {
		t.Errorf("status %d, want the second program's 4\n%s", got.status, got.stderr)
	}
	rec := readRecording(t, file)
	if !rec.Target.Exited || len(rec.Notes) == 0 || !strings.Contains(rec.Notes[0], "another program") {
		t.Errorf("target %+v, notes %q", rec.Target, rec.Notes)
	}
	for _, site := range rec.Allocation.Sites {
		if root := site.Stack[len(site.Stack)-1]; root.Unresolved == "unmapped" {
			t.Errorf("a stack of the first program is not named: %+v", root)
		}
	}
	if len(rec.Allocation.Threads) != 1 || rec.Allocation.Threads[0].Name != "python3" {
		t.Errorf("threads %+v", rec.Allocation.Threads)
	}
}

// TestDurationEndsTheCommand: a command that outlives the trace is asked to end.
func TestDurationEndsTheCommand(t *testing.T) {
	got := run(t, memtrace(t, "--duration", "300ms", "--", workload.Build(t, "ticker.c")))
	if got.status != 0 || !strings.Contains(got.stdout, "tick") {
		t.Errorf("status %d\n%s\n%s", got.status, got.stdout, got.stderr)
	}
}

// TestInterrupt: Ctrl-C ends the trace of a running process with a report, and the process
// goes on.
func TestInterrupt(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		ticker := workload.Start(t, workload.Build(t, "ticker.c"))
		ticker.Expect(t, "ready")
		ready := filepath.Join(t.TempDir(), "ready")
		command := memtrace(t, "--pid", fmt.Sprint(ticker.PID()), "--ready-file", ready)
		var stdout, stderr bytes.Buffer
		command.Stdout, command.Stderr = &stdout, &stderr
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, ready)
		if content, err := os.ReadFile(ready); err != nil || strings.TrimSpace(string(content)) != fmt.Sprint(ticker.PID()) {
			t.Errorf("ready file %q, %v", content, err)
		}
		if err := command.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("%v: %v\n%s", signal, err, stderr.String())
		}
		if !strings.Contains(stdout.String(), "ticker") || stderr.Len() != 0 {
			t.Errorf("report:\n%s\nerrors:\n%s", stdout.String(), stderr.String())
		}
		if err := ticker.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("the target is gone: %v", err)
		}
	}
}

// TestTargetExits: the report is printed when the target ends.
func TestTargetExits(t *testing.T) {
	ticker := workload.Start(t, workload.Build(t, "ticker.c"))
	ticker.Expect(t, "ready")
	ready := filepath.Join(t.TempDir(), "ready")
	command := memtrace(t, "--pid", fmt.Sprint(ticker.PID()), "--ready-file", ready, "--exact", "-f", "json", "-q")
	var stdout bytes.Buffer
	command.Stdout = &stdout
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, ready)
	ticker.Process.Signal(syscall.SIGTERM)
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	rec := &recording.Recording{}
	if err := json.Unmarshal(stdout.Bytes(), rec); err != nil {
		t.Fatal(err)
	}
	if !rec.Target.Exited || rec.Schema != recording.Schema {
		t.Errorf("target %+v", rec.Target)
	}
	for _, site := range rec.Allocation.Sites {
		if site.Stack[0].Function != "tick" {
			t.Errorf("site %s: %+v", site.Entry, site.Stack[0])
		}
	}
}

// TestKilledMemtraceLeavesNothing: after SIGKILL the target's allocator is as its file has it,
// and the target runs on.
func TestKilledMemtraceLeavesNothing(t *testing.T) {
	ticker := workload.Start(t, workload.Build(t, "ticker.c", "-static"))
	ticker.Expect(t, "ready")
	before := codeOf(t, ticker)
	ready := filepath.Join(t.TempDir(), "ready")
	command := memtrace(t, "--pid", fmt.Sprint(ticker.PID()), "--ready-file", ready)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, ready)
	if bytes.Equal(codeOf(t, ticker), before) {
		t.Error("no probe is in the code while memtrace runs")
	}
	command.Process.Kill()
	command.Wait()
	workload.Eventually(t, "the code is as it was", func() bool { return bytes.Equal(codeOf(t, ticker), before) })
	ticker.Process.Signal(syscall.SIGTERM)
	ticker.Wait()
	if status := ticker.ProcessState.ExitCode(); status != 5 {
		t.Errorf("the target ended with %d, want 5", status)
	}
}

// codeOf reads the program's code in the process's memory.
func codeOf(t *testing.T, p *workload.Process) []byte {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	for line := range strings.Lines(string(maps)) {
		var start, end int64
		if !strings.Contains(line, " r-xp ") || !strings.Contains(line, p.Path) {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x", &start, &end); err != nil {
			t.Fatal(err)
		}
		code := make([]byte, end-start)
		if _, err := io.ReadFull(io.NewSectionReader(memory, start, end-start), code); err != nil {
			t.Fatal(err)
		}
		return code
	}
	t.Fatal("no code is mapped")
	return nil
}

// TestVersionAndHelp: what attaches nothing prints to standard output.
func TestVersionAndHelp(t *testing.T) {
	if got := run(t, memtrace(t, "--version")); got.status != 0 || !strings.HasPrefix(got.stdout, "memtrace ") {
		t.Errorf("%+v", got)
	}
	got := run(t, memtrace(t, "--help"))
	for _, word := range []string{"--pid", "--max-overhead", "Examples:", "-- ./server", "Exit status:"} {
		if !strings.Contains(got.stdout, word) {
			t.Errorf("the help lacks %q:\n%s", word, got.stdout)
		}
	}
	if got.status != 0 || got.stderr != "" {
		t.Errorf("status %d, errors %q", got.status, got.stderr)
	}
	for line := range strings.Lines(got.stdout) {
		if len(strings.TrimRight(line, "\n")) > 100 {
			t.Errorf("line of the help is longer than 100 columns: %s", line)
		}
	}
}

// TestOutputFiles: each file has the form that its name asks for, and nothing lies beside it.
func TestOutputFiles(t *testing.T) {
	directory := t.TempDir()
	arguments := []string{"--exact", "-q"}
	names := []string{"run.json", "run.json.gz", "run.txt", "run.folded"}
	for _, name := range names {
		arguments = append(arguments, "-o", filepath.Join(directory, name))
	}
	got := run(t, memtrace(t, append(arguments, "--", workload.Build(t, "firstalloc.c"))...))
	if got.status != 0 {
		t.Fatalf("status %d\n%s", got.status, got.stderr)
	}
	entries, err := os.ReadDir(directory)
	if err != nil || len(entries) != len(names) {
		t.Errorf("%d files, want %d: %v", len(entries), len(names), entries)
	}
	if out, err := exec.Command("gzip", "-t", filepath.Join(directory, "run.json.gz")).CombinedOutput(); err != nil {
		t.Errorf("run.json.gz: %v %s", err, out)
	}
	folded, err := os.ReadFile(filepath.Join(directory, "run.folded"))
	if err != nil || !strings.Contains(string(folded), "make_first_block;malloc 12345\n") {
		t.Errorf("run.folded: %v\n%s", err, folded)
	}
	text, err := os.ReadFile(filepath.Join(directory, "run.txt"))
	if err != nil || string(text) != got.stdout {
		t.Errorf("run.txt is not what was printed: %v", err)
	}
}
