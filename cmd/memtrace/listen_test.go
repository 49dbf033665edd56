package main

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestListenWhileTracing asks a trace for its metrics while it runs; the report comes all
// the same.
func TestListenWhileTracing(t *testing.T) {
	pid, _ := churn(t)
	address := freeAddress(t)
	var report, words bytes.Buffer
	command := memtrace(t, "--pid", strconv.Itoa(pid), "-q", "--listen", address)
	command.Stdout, command.Stderr = &report, &words
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { command.Process.Kill() })
	eventually(t, "the trace serves what it has counted, and the heap", func() bool {
		metrics := get(t, "http://"+address+"/metrics")
		return strings.Contains(metrics, `memtrace_allocs_total{comm="churn"`) && strings.Contains(metrics, "memtrace_heap_live_bytes")
	})
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil || !strings.Contains(report.String(), "new blocks") {
		t.Errorf("%v, report %q, it says %q", err, report.String(), words.String())
	}
}

// TestListenRefused gives an address that cannot be listened on.
func TestListenRefused(t *testing.T) {
	pid, _ := churn(t)
	oneLine(t, run(t, memtrace(t, "--pid", strconv.Itoa(pid), "-q", "--listen", "127.0.0.1:port")), statusFailed, "--listen")
}
