package main

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"strings"
	"testing"
)

// TestListenWhileTracing asks a trace for its metrics while it runs; the report comes all
// the same.
func TestListenWhileTracing(t *testing.T) {
	pid, _ := churn(t)
	address := freeAddress(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var report bytes.Buffer
	e := &environment{stdout: &report, stderr: io.Discard}
	ended := make(chan int, 1)
	go func() {
		ended <- e.run(ctx, []string{"--pid", strconv.Itoa(pid), "--probes", "alloc", "-q", "--listen", address})
	}()
	eventually(t, "the trace serves what it has counted", func() bool {
		return strings.Contains(get(t, "http://"+address+"/metrics"), `memtrace_allocs_total{comm="churn"`)
	})
	cancel()
	if status := <-ended; status != 0 || !strings.Contains(report.String(), "new blocks") {
		t.Errorf("status %d, report %q", status, report.String())
	}
}

// TestListenRefused gives an address that cannot be listened on.
func TestListenRefused(t *testing.T) {
	pid, _ := churn(t)
	var words bytes.Buffer
	e := &environment{stdout: io.Discard, stderr: &words}
	if status := e.run(context.Background(), []string{"--pid", strconv.Itoa(pid), "-q", "--listen", "127.0.0.1:port"}); status != statusFailed {
		t.Errorf("status %d", status)
	}
	if !strings.Contains(words.String(), "--listen") {
		t.Errorf("it says %q", words.String())
	}
}
