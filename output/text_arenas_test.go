package output

import (
	"bytes"
	"strings"
	"testing"

	"memtrace/tracer/recording"
)

// arenaRecording is a process whose four workers made an arena each and of which one trims.
func arenaRecording() *recording.Recording {
	stack := func(names ...string) (s recording.Stack) {
		for _, name := range names {
			s = append(s, recording.Frame{Function: name, Module: "/bin/daemon"})
		}
		return s
	}
	a := &recording.Arenas{Limit: 16, HeapsGrown: 12, HeapsShrunk: 3, Method: "uprobes"}
	for i := range 4 {
		a.Created = append(a.Created, recording.ArenaEvent{TimeNS: int64(i+1) * 1e6, TID: 100 + i, Thread: "worker",
			Cause: "first-allocation", Stack: stack("parse_request", "serve")})
	}
	a.Reused = []recording.ArenaEvent{{TimeNS: 9e6, TID: 104, Thread: "late", Cause: "retry", Stack: stack("load", "main")}}
	a.Trims = []recording.Trim{{TimeNS: 2e9, TID: 100, Thread: "worker", DurationNS: 12e6, RSSBeforeBytes: 300 << 20, RSSAfterBytes: 100 << 20,
		Returned: true, Waiters: 3, Stack: stack("tidy", "main")}}
	a.Thresholds = []recording.ThresholdRise{{TimeNS: 1e9, BeforeBytes: 128 << 10, AfterBytes: 3 << 20, Stack: stack("drop_image", "main")}}
	return &recording.Recording{Arenas: a, Mmap: &recording.Mmap{
		Totals: recording.MmapTotals{MappedBytes: 96 << 20, UnmappedBytes: 32 << 20, Maps: 6, BrkBytes: -4096, DiscardedBytes: 1 << 20, AllocatorBytes: 256 << 20},
		Sites:  []recording.MmapSite{{Stack: stack("__GI___mmap64", "mmap", "new_space", "vm_start"), Maps: 6, MappedBytes: 96 << 20, LiveBytes: 64 << 20, ResidentBytes: 60 << 20}},
	}}
}

func TestArenasText(t *testing.T) {
	var out bytes.Buffer
	if err := Text(&out, arenaRecording(), Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"4 arenas made (at most 16), 1 given to another thread; heaps grew 12 times and shrank 3 times",
		"parse_request < serve", "first-allocation", "retry", "200 MiB", "drop_image < main",
		"rose from 128 KiB to 3", "96.0 MiB in 6 calls, 32.0 MiB unmapped", "new_space < vm_start", "malloc itself mapped 256 MiB",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("%q is not in the report:\n%s", want, out.String())
		}
	}
	for line := range strings.Lines(out.String()) {
		if columns(strings.TrimSuffix(line, "\n")) > pageWidth {
			t.Errorf("wider than the page: %q", line)
		}
	}
}
