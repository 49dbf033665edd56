package heap

import (
	"context"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memtrace/internal/workload"
	"memtrace/tracer/recording"
)

// shapes are command lists for the workload, by name.
var shapes = map[string][]string{
	"fresh":          nil,
	"holes":          {"holes 20000 700"},
	"pins":           {"pins 20000 1000"},
	"large bins":     {"large 3000"},
	"fast bins":      {"fast 5000 24", "fast 3000 100"},
	"thread caches":  {"fast 7 24", "fast 5 500", "fast 3 1000", "threads 4 50"},
	"top":            {"top 100000"},
	"untouched top":  {"untouched 30000000"},
	"mmapped chunks": {"mmapped 20 300000", "mmapped 3 5000000"},
	"drift":          {"drift 8000000", "mmapped 4 1000000"},
	"mixed":          {"mixed 30000"},
	"after a trim":   {"mixed 20000", "pins 3000 9000", "trim"},
	"thread arenas":  {"threads 8 3000"},
	"thread exits":   {"threads 12 2000", "end", "threads 3 1000"},
	"64 arenas":      {"threads 64 300"},
	"foreign sbrk":   {"holes 500 700", "sbrk 40000", "holes 500 900"},
	"large heaps":    {"threads 2 90000"},
	"only read":      {"reread 20000000", "mixed 1000"},
}

// shaped starts the workload and has it make a shape.
func shaped(t *testing.T, command *workload.Process, commands []string) {
	t.Helper()
	command.Expect(t, "ready")
	for _, line := range commands {
		command.Say(t, line)
		if line == "trim" {
			command.Expect(t, "trimmed")
			continue
		}
		command.Expect(t, "ok")
	}
}

func TestSnapshotEqualsMallinfo(t *testing.T) {
	program := workload.Build(t, "heapshape.c")
	for name, commands := range shapes {
		t.Run(name, func(t *testing.T) {
			p := workload.Start(t, program)
			shaped(t, p, commands)
			compare(t, p)
		})
	}
}

// compare takes a snapshot and holds it against what the target says of itself.
func compare(t *testing.T, p *workload.Process) *recording.Heap {
	t.Helper()
	p.Say(t, "info")
	want := readInfo(t, p)
	h := snapshot(t, p.PID(), Options{})
	if !h.Consistent {
		t.Errorf("not consistent: %q", h.Notes)
	}
	if diff := cmp.Diff(want.mallinfo, h.MallInfo); diff != "" {
		t.Errorf("mallinfo2 differs (-target +memtrace):\n%s%q", diff, h.Notes)
	}
	view := arenaView(h)
	for i := range min(len(view), len(want.arenas)) {
		view[i].FreeBytes = withFlags(view[i].FreeBytes, want.arenas[i].FreeBytes, h.Arenas[i].FreeChunks)
	}
	if diff := cmp.Diff(want.arenas, view); diff != "" {
		t.Errorf("malloc_info differs (-target +memtrace):\n%s", diff)
	}
	addsUp(t, h)
	return h
}

// withFlags forgives malloc_info that it adds chunk sizes up with the flags in their low
// bits: one for each free chunk, five where the chunk is marked as a thread arena's.
func withFlags(bytes, reported, chunks uint64) uint64 {
	if reported > bytes && reported-bytes <= 5*chunks {
		return reported
	}
	return bytes
}

func snapshot(t *testing.T, pid int, options Options) *recording.Heap {
	t.Helper()
	r, err := Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h, err := r.Snapshot(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// addsUp checks the ledger's promise, and that no part is larger than its whole.
func addsUp(t *testing.T, h *recording.Heap) {
	t.Helper()
	l := h.Ledger
	sum := l.ArenaLiveResidentBytes + l.ArenaFreeResidentBytes + l.MmappedChunkBytes + l.OtherAnonBytes + l.StackBytes + l.FileBytes
	if sum != l.RSSBytes {
		t.Errorf("the ledger's parts are %d bytes, the process has %d", sum, l.RSSBytes)
	}
	for _, a := range h.Arenas {
		if a.FreeResidentBytes > a.FreeBytes || a.FreeBytes > a.SystemBytes || a.TrimmableBytes > a.FreeResidentBytes {
			t.Errorf("arena %v: impossible figures: %+v", a.Address, a)
		}
	}
}

// arenaInfo is what malloc_info tells of one arena.
type arenaInfo struct {
	System, FreeChunks, FreeBytes, FastBytes uint64
}

// reported is what the target printed.
type reported struct {
	mallinfo recording.MallInfo
	arenas   []arenaInfo
}

func arenaView(h *recording.Heap) []arenaInfo {
	var view []arenaInfo
	for _, a := range h.Arenas {
		view = append(view, arenaInfo{a.SystemBytes, a.FreeChunks, a.FreeBytes, a.FastbinBytes})
	}
	return view
}

// readInfo reads the answer to "info".
func readInfo(t *testing.T, p *workload.Process) reported {
	t.Helper()
	var r reported
	m := &r.mallinfo
	line := p.Expect(t, "mallinfo")
	if _, err := fmt.Sscan(line, &m.Arena, &m.Ordblks, &m.Smblks, &m.Hblks, &m.Hblkhd, &m.Usmblks, &m.Fsmblks, &m.Uordblks, &m.Fordblks, &m.Keepcost); err != nil {
		t.Fatalf("mallinfo %q: %v", line, err)
	}
	var text strings.Builder
	for {
		line := p.Expect(t, "")
		if line == "done" {
			break
		}
		text.WriteString(line + "\n")
	}
	type total struct {
		Type  string `xml:"type,attr"`
		Count uint64 `xml:"count,attr"`
		Size  uint64 `xml:"size,attr"`
	}
	var info struct {
		Heaps []struct {
			Totals []total `xml:"total"`
			System []total `xml:"system"`
		} `xml:"heap"`
	}
	if err := xml.Unmarshal([]byte(text.String()), &info); err != nil {
		t.Fatalf("malloc_info: %v\n%s", err, text.String())
	}
	for _, h := range info.Heaps {
		a := arenaInfo{}
		for _, total := range h.Totals {
			a.FreeBytes += total.Size
			a.FreeChunks += total.Count
			if total.Type == "fast" {
				a.FastBytes = total.Size
			}
		}
		a.FreeChunks-- // the top
		for _, system := range h.System {
			if system.Type == "current" {
				a.System = system.Size
			}
		}
		r.arenas = append(r.arenas, a)
	}
	return r
}
