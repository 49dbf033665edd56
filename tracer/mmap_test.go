package tracer

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memtrace/internal/workload"
	"memtrace/tracer/recording"
)

// mappedSums is what a function of the workload maps.
type mappedSums struct{ Maps, Mapped, Live uint64 }

// TestMemoryCalls compares what was mapped outside malloc with the sums of a program that
// maps, unmaps in parts, replaces, moves, and moves the break, while malloc does the same.
func TestMemoryCalls(t *testing.T) {
	p := workload.Start(t, workload.Build(t, "maps.c"))
	p.Expect(t, "ready")
	s := startSession(t, Options{PID: p.PID(), Probes: []string{"mmap"}, Round: "none"})
	p.Say(t, "go")
	told := map[string]mappedSums{}
	const functions = 4
	for range functions {
		var name string
		var sums mappedSums
		if _, err := fmt.Sscan(p.Expect(t, "function "), &name, &sums.Maps, &sums.Mapped, &sums.Live); err != nil {
			t.Fatal(err)
		}
		told[name] = sums
	}
	var want recording.MmapTotals
	if _, err := fmt.Sscan(p.Expect(t, "totals "), &want.MappedBytes, &want.UnmappedBytes, &want.BrkBytes, &want.DiscardedBytes); err != nil {
		t.Fatal(err)
	}
	p.Expect(t, "done")
	rec := finishSession(t, s)
	checkLosses(t, rec)
	got := map[string]mappedSums{}
	for _, site := range rec.Mmap.Sites {
		name := siteFunction(site.Stack, told)
		sums := got[name]
		got[name] = mappedSums{sums.Maps + site.Maps, sums.Mapped + site.MappedBytes, sums.Live + site.LiveBytes}
		if site.ResidentBytes > site.LiveBytes {
			t.Errorf("%s: %d bytes resident of %d", name, site.ResidentBytes, site.LiveBytes)
		}
	}
	if diff := cmp.Diff(told, got); diff != "" {
		t.Errorf("sites (-program +memtrace):\n%s", diff)
	}
	totals := rec.Mmap.Totals
	if totals.AllocatorBytes < 40<<20 {
		t.Errorf("malloc mapped %d bytes, the program asked it for 48 MiB", totals.AllocatorBytes)
	}
	totals.Maps, totals.Unmaps, totals.AllocatorBytes = 0, 0, 0
	if diff := cmp.Diff(want, totals); diff != "" {
		t.Errorf("totals (-program +memtrace):\n%s", diff)
	}
	p.Say(t, "end")
}

// siteFunction is the function of the program, among those known, that a stack leads through.
func siteFunction(stack recording.Stack, known map[string]mappedSums) string {
	for _, frame := range stack {
		if _, found := known[frame.Function]; found {
			return frame.Function
		}
	}
	return fmt.Sprintf("unknown: %v", stack)
}

// TestPythonArenas looks for pymalloc's arenas, 1 MiB each since Python 3.10 and 256 KiB
// before, in the resident memory that malloc does not hold.
func TestPythonArenas(t *testing.T) {
	const debian = "/usr/bin/python3"
	if _, err := os.Stat(debian); err != nil {
		t.Fatalf("%v: scripts/install-packages installs it", err)
	}
	const program = `
import sys
print("ready", flush=True)
sys.stdin.readline()
kept = [(i, float(i)) for i in range(1000000)]
print("done", flush=True)
sys.stdin.readline()
`
	command := exec.Command(debian, "-c", program)
	p := workload.StartCommand(t, command)
	p.Expect(t, "ready")
	s := startSession(t, Options{PID: p.PID(), Probes: []string{"mmap", "arena"}, Round: "none"})
	p.Say(t, "go")
	p.Expect(t, "done")
	rec := finishSession(t, s)
	checkLosses(t, rec)
	var live, resident uint64
	for _, site := range rec.Mmap.Sites {
		if strings.Contains(fmt.Sprint(site.Stack), "python") {
			live, resident = live+site.LiveBytes, resident+site.ResidentBytes
		}
	}
	// A tuple of two takes 56 bytes and 16 for the collector, a float 24, an int 28 or 32.
	const least = 1000000 * (56 + 24 + 28)
	if live < least || resident < least*9/10 {
		t.Errorf("%d bytes mapped and %d resident, a million tuples take %d", live, resident, uint64(least))
	}
	p.Say(t, "end")
}
