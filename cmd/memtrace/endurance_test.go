package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"memtrace/internal/workload"
)

// TestKilledAgainAndAgain: memtrace is killed at random points while its target allocates
// hard; the target's code is as it was after each time, and the target goes on.
func TestKilledAgainAndAgain(t *testing.T) {
	p := workload.Start(t, workload.Build(t, "pairs.c", "-static"))
	p.Expect(t, "ready")
	p.Say(t, "1000000000000 1") // as fast as it can, until it is killed
	before := codeOf(t, p)
	for i := range workload.Cycles(8, 100) {
		command := memtrace(t, "--pid", fmt.Sprint(p.PID()), "-q")
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i%10) * 60 * time.Millisecond)
		command.Process.Kill()
		command.Wait()
		workload.Eventually(t, "the target's code is as it was", func() bool { return bytes.Equal(codeOf(t, p), before) })
	}
	if err := p.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the target is gone: %v", err)
	}
}

// TestFewDescriptors: without descriptors memtrace says so in one line and ends; with just
// enough it works. It never hangs or crashes.
func TestFewDescriptors(t *testing.T) {
	ticker := workload.Start(t, workload.Build(t, "ticker.c"))
	ticker.Expect(t, "ready")
	worked := false
	for limit := 8; limit <= 512; limit *= 2 {
		inner := memtrace(t, "--pid", fmt.Sprint(ticker.PID()), "-q", "--duration", "200ms")
		command := exec.Command("prlimit", append([]string{fmt.Sprintf("--nofile=%d", limit), inner.Path}, inner.Args[1:]...)...)
		command.Env = inner.Env
		got := run(t, command)
		worked = got.status == 0
		if worked {
			continue
		}
		if got.status != statusFailed && got.status != statusUntraceable || strings.Contains(got.stderr, "goroutine ") {
			t.Errorf("%d descriptors: status %d\n%s", limit, got.status, got.stderr)
		}
		if !strings.Contains(got.stderr, "too many open files") {
			t.Errorf("%d descriptors: what is missing is not said: %s", limit, got.stderr)
		}
	}
	if !worked {
		t.Error("512 descriptors are not enough")
	}
}

// TestFullDiskAtTheEnd: a report that cannot be written is said to be missing; the one on
// standard output is complete.
func TestFullDiskAtTheEnd(t *testing.T) {
	directory := t.TempDir()
	file := filepath.Join(directory, "run.json")
	inner := memtrace(t, "--exact", "-q", "--probes", "alloc", "-o", file, "--", workload.Build(t, "firstalloc.c"))
	script := `mount -t tmpfs -o size=4k tmpfs "$0" && exec "$@"`
	command := exec.Command("unshare", append([]string{"--mount", "sh", "-c", script, directory, inner.Path}, inner.Args[1:]...)...)
	command.Env = inner.Env
	got := run(t, command)
	if got.status != statusFailed || !strings.Contains(got.stderr, "no space left on device") || !strings.Contains(got.stderr, file) {
		t.Errorf("status %d: %s", got.status, got.stderr)
	}
	if !strings.Contains(got.stdout, "new blocks") {
		t.Errorf("the report on standard output: %.300s", got.stdout)
	}
}
