package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// asMemtrace makes the test binary run as memtrace itself.
const asMemtrace = "MEMTRACE_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMemtrace) != "" {
		os.Unsetenv(asMemtrace)
		main()
		return
	}
	os.Exit(m.Run())
}

// memtrace prepares a run of memtrace; it is killed after two minutes.
func memtrace(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, self, arguments...)
	command.Env = append(os.Environ(), asMemtrace+"=1")
	return command
}

// outcome is what a run of memtrace came to.
type outcome struct {
	status         int
	stdout, stderr string
}

// run runs memtrace to its end.
func run(t *testing.T, command *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	if err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	return outcome{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// waitFor waits until a file exists.
func waitFor(t *testing.T, path string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("no %s within a minute", filepath.Base(path))
}

// oneLine checks that memtrace said what is wrong in one line, and all of the words.
func oneLine(t *testing.T, got outcome, status int, words ...string) {
	t.Helper()
	if got.status != status {
		t.Errorf("exit status %d, want %d\n%s", got.status, status, got.stderr)
	}
	if strings.Count(got.stderr, "\n") != 1 || !strings.HasPrefix(got.stderr, "memtrace: ") {
		t.Errorf("want one line on standard error, got:\n%s", got.stderr)
	}
	for _, word := range words {
		if !strings.Contains(got.stderr, word) {
			t.Errorf("the message lacks %q: %s", word, got.stderr)
		}
	}
	if got.stdout != "" {
		t.Errorf("standard output holds %q", got.stdout)
	}
}
