package finding

import (
	"strings"
	"testing"

	"memtrace/tracer/recording"
)

// mapping is a recording of a process with this much resident memory outside malloc and in
// malloc, and one site that has mapped and kept some of it.
func mapping(outside, malloc, mapped, resident uint64) *recording.Recording {
	heap := heapOf(0, arena(malloc, 0))
	heap.Ledger.OtherAnonBytes = outside
	heap.Ledger.RSSBytes = outside + malloc
	stack := recording.Stack{{Function: "mmap", Module: "/lib/libc.so.6"}, {Function: "new_space", Module: "/bin/vm"}}
	return &recording.Recording{Heap: heap, Mmap: &recording.Mmap{
		Totals: recording.MmapTotals{MappedBytes: mapped},
		Sites:  []recording.MmapSite{{Stack: stack, MappedBytes: mapped, LiveBytes: resident, ResidentBytes: resident}},
	}}
}

func TestMmapRetention(t *testing.T) {
	tests := []struct {
		name string
		rec  *recording.Recording
		want recording.Severity
	}{
		{"malloc has it", mapping(80*mib, 300*mib, mib, mib), ""},
		{"little", mapping(40*mib, mib, 30*mib, 30*mib), ""},
		{"a runtime with a heap of its own that stays as it is", mapping(500*mib, 20*mib, 0, 0), recording.Info},
		{"mapped and unmapped again", mapping(200*mib, 20*mib, 4*gib, 100*mib), recording.Info},
		{"mappings pile up", mapping(500*mib, 20*mib, 300*mib, 290*mib), recording.Medium},
		{"without the heap nothing is known", &recording.Recording{Mmap: &recording.Mmap{}}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			found := mmapRetention(test.rec)
			if severities(found)["mmap-retention"] != test.want {
				t.Errorf("found %+v, want severity %q", found, test.want)
			}
			if test.want == recording.Medium && !strings.Contains(found[0].Summary, "by new_space") {
				t.Errorf("the summary does not say who: %s", found[0].Summary)
			}
		})
	}
}

func TestTrimStall(t *testing.T) {
	const ms = 1e6
	trim := func(durationNS int64, waiters int) recording.Trim {
		return recording.Trim{DurationNS: durationNS, Waiters: waiters, Stack: recording.Stack{{Function: "tidy"}}}
	}
	tests := []struct {
		name  string
		trims []recording.Trim
		want  recording.Severity
	}{
		{"no trim", nil, ""},
		{"nobody waited", []recording.Trim{trim(500*ms, 0)}, ""},
		{"a short one", []recording.Trim{trim(ms, 2)}, recording.Info},
		{"a long one", []recording.Trim{trim(ms, 2), trim(30*ms, 1), trim(900*ms, 0)}, recording.Medium},
		{"a very long one", []recording.Trim{trim(300*ms, 7)}, recording.High},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			found := trimStall(&recording.Recording{Arenas: &recording.Arenas{Trims: test.trims}})
			if severities(found)["trim-stall"] != test.want {
				t.Errorf("found %+v, want severity %q", found, test.want)
			}
			if test.want != "" && !strings.Contains(found[0].Summary, "tidy") {
				t.Errorf("the summary does not say who: %s", found[0].Summary)
			}
		})
	}
}
