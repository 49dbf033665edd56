package output

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"memtrace/tracer/recording"
)

// Each measure's folded stacks add up to what the recording holds.
func TestFoldedOfEveryMeasure(t *testing.T) {
	rec := wholeRecording(t)
	rec.Mmap = &recording.Mmap{Sites: []recording.MmapSite{{Stack: recording.Stack{{Function: "mmap"}, {Function: "load"}}, Maps: 2, MappedBytes: 8192}}}
	rec.Allocation.Sites[0].BytesPerRound, rec.Allocation.Sites[1].BytesPerRound = 1000.4, 99.6
	rec.Locks.Locks[1].Waiters = []recording.LockWaiter{{Stack: recording.Stack{{Function: "idle"}}, WaitNS: 40_000_000_000}}
	want := map[string]uint64{"round-bytes": 1100, "lock-wait": 31_000_000_000, "arena-created": 11, "mmap-bytes": 8192}
	for _, site := range rec.Allocation.Sites {
		want["alloc-bytes"] += site.AllocBytes
		want["alloc-count"] += site.Allocs
		want["live-bytes"] += site.LiveBytes
	}
	for _, measure := range MeasureNames() {
		var file bytes.Buffer
		if err := Folded(&file, rec, Options{Measure: measure}); err != nil {
			t.Fatal(err)
		}
		var sum uint64
		for line := range strings.Lines(file.String()) {
			var weight uint64
			at := strings.LastIndexByte(line, ' ')
			if _, err := fmt.Sscan(line[at:], &weight); err != nil || at == 0 {
				t.Fatalf("%s: %q", measure, line)
			}
			sum += weight
		}
		if sum != want[measure] {
			t.Errorf("%s: %d in all, want %d", measure, sum, want[measure])
		}
	}
}

// A probe that was off is said to be off; a stack that was lost still weighs.
func TestFoldedWithoutStacks(t *testing.T) {
	for _, measure := range MeasureNames() {
		if err := Folded(&bytes.Buffer{}, &recording.Recording{}, Options{Measure: measure}); err == nil || !strings.Contains(err.Error(), "probe was off") {
			t.Errorf("%s: %v", measure, err)
		}
	}
	var file bytes.Buffer
	rec := &recording.Recording{Mmap: &recording.Mmap{Sites: []recording.MmapSite{{MappedBytes: 5}}}}
	if err := Folded(&file, rec, Options{Measure: "mmap-bytes"}); err != nil || file.String() != "[no stack] 5\n" {
		t.Errorf("%q, %v", file.String(), err)
	}
}
