package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"memtrace/internal/workload"
)

// TestTargetKilledAtAnyPoint: whatever memtrace is at when the target dies, it ends with a
// report, or with one line that says that the process is gone; it neither hangs nor crashes.
func TestTargetKilledAtAnyPoint(t *testing.T) {
	program := workload.Build(t, "ticker.c")
	reports := 0
	for delay := time.Duration(0); delay < 600*time.Millisecond; delay += 30 * time.Millisecond {
		p := workload.Start(t, program)
		p.Expect(t, "ready")
		command := memtrace(t, "--pid", fmt.Sprint(p.PID()), "-q")
		var stdout, stderr bytes.Buffer
		command.Stdout, command.Stderr = &stdout, &stderr
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(delay)
		p.Process.Kill()
		p.Wait()
		command.Wait()
		switch status := command.ProcessState.ExitCode(); {
		case status == 0 && strings.Contains(stdout.String(), "the process ended while it was traced"):
			reports++
		case status == statusUntraceable || status == statusFailed:
			if strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), "ended") && !strings.Contains(stderr.String(), "gone") && !strings.Contains(stderr.String(), "no process") {
				t.Errorf("killed after %v: status %d, %s", delay, status, stderr.String())
			}
		default:
			t.Errorf("killed after %v: status %d\n%.200s\n%.2000s", delay, status, stdout.String(), stderr.String())
		}
	}
	t.Logf("%d of 20 ended with a report", reports)
}
