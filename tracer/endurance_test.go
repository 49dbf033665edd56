package tracer

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"memtrace/internal/workload"
)

// TestAttachDetachCycles: traces that come and go leave nothing in the target, which
// allocates hard all the while, and nothing open here.
func TestAttachDetachCycles(t *testing.T) {
	p := workload.Start(t, workload.Build(t, "pairs.c"))
	p.Expect(t, "ready")
	p.Say(t, "1000000000000 1") // as fast as it can, until it is killed
	cycle := func() {
		s, err := Open(t.Context(), Options{PID: p.PID(), Probes: []string{"alloc"}, Round: "none"})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Attach(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	before := allocatorCode(t, p.PID())
	cycle() // what is opened once for all stays open
	descriptors := openDescriptors(t)
	cycles := workload.Cycles(15, 1000)
	for range cycles {
		cycle()
	}
	workload.Eventually(t, "the target's code is as it was", func() bool { return bytes.Equal(allocatorCode(t, p.PID()), before) })
	workload.Eventually(t, "no descriptor is left open", func() bool { return openDescriptors(t) <= descriptors })
}

// allocatorCode reads the code of the C library in the process's memory.
func allocatorCode(t *testing.T, pid int) []byte {
	t.Helper()
	s, err := Open(t.Context(), Options{PID: pid, Probes: []string{"alloc"}, Round: "none"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m := s.tracee.target.Allocator.Mapping
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	code := make([]byte, m.End-m.Start)
	if _, err := memory.ReadAt(code, int64(m.Start)); err != nil {
		t.Fatal(err)
	}
	return code
}

// openDescriptors counts what this process has open.
func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
