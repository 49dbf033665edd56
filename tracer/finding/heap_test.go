package finding

import (
	"strings"
	"testing"

	"memtrace/tracer/recording"
)

// heapOf makes a heap from its arenas; the first is the main one. Its ledger follows.
func heapOf(forecast uint64, arenas ...recording.Arena) *recording.Heap {
	h := &recording.Heap{Consistent: true, Arenas: arenas, TrimForecastBytes: forecast}
	for i := range arenas {
		arenas[i].Main = i == 0
		h.Ledger.ArenaLiveResidentBytes += arenas[i].LiveBytes
		h.Ledger.ArenaFreeResidentBytes += arenas[i].FreeResidentBytes
	}
	h.Limits = recording.Limits{ArenaLimit: 16, MmapThresholdBytes: 128 * kib, TrimThresholdBytes: 128 * kib, MmapThresholdDynamic: true}
	return h
}

// arena is an arena with live bytes and free resident bytes, the latter also free.
func arena(live, free uint64) recording.Arena {
	return recording.Arena{LiveBytes: live, FreeBytes: free, FreeResidentBytes: free, FreeChunks: 1000, LargestFreeBytes: free / 100}
}

// severities maps the kinds found to their severity.
func severities(found []recording.Finding) map[string]recording.Severity {
	kinds := map[string]recording.Severity{}
	for _, f := range found {
		kinds[f.Kind] = f.Severity
	}
	return kinds
}

func TestHeapFindings(t *testing.T) {
	drifted := heapOf(20*mib, arena(40*mib, 200*mib))
	drifted.Limits.MmapThresholdBytes = 8 * mib
	tests := []struct {
		name string
		heap *recording.Heap
		want map[string]recording.Severity
	}{
		{"a healthy heap", heapOf(mib, arena(300*mib, 20*mib)), nil},
		{"a small heap that is mostly free", heapOf(30*mib, arena(2*mib, 40*mib)), nil},
		{"untouched free memory costs nothing", heapOf(0, recording.Arena{LiveBytes: 40 * mib, FreeBytes: 4 * gib, FreeResidentBytes: mib}), nil},
		{"the incident: 44 MiB live, 1.4 GiB held by eight arenas", heapOf(1100*mib, append([]recording.Arena{arena(10*mib, 50*mib)},
			arena(5*mib, 180*mib), arena(5*mib, 180*mib), arena(5*mib, 180*mib), arena(5*mib, 180*mib), arena(5*mib, 180*mib), arena(5*mib, 180*mib), arena(4*mib, 180*mib))...),
			map[string]recording.Severity{"arena-retention": recording.High, "arena-sprawl": recording.High, "trim-effective": recording.Info}},
		{"held in the main arena", heapOf(10*mib, arena(60*mib, 300*mib), arena(mib, 2*mib)),
			map[string]recording.Severity{"arena-retention": recording.Medium, "main-arena-fragmentation": recording.Medium, "trim-ineffective": recording.Info}},
		{"two arenas are no sprawl", heapOf(200*mib, arena(10*mib, 10*mib), arena(10*mib, 120*mib), arena(10*mib, 120*mib)),
			map[string]recording.Severity{"arena-retention": recording.Medium, "trim-effective": recording.Info}},
		{"a drifted threshold with memory held", drifted,
			map[string]recording.Severity{"arena-retention": recording.Medium, "main-arena-fragmentation": recording.Medium, "threshold-drift": recording.Medium, "trim-ineffective": recording.Info}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			found := Judge(&recording.Recording{Heap: test.heap})
			got := severities(found)
			for kind, severity := range test.want {
				if got[kind] != severity {
					t.Errorf("%s: severity %q, want %q", kind, got[kind], severity)
				}
			}
			for kind := range got {
				if _, wanted := test.want[kind]; !wanted {
					t.Errorf("false alarm: %s", kind)
				}
			}
			for _, f := range found {
				if f.Summary == "" || f.Next == "" || len(f.Evidence) == 0 || f.Subject == "" {
					t.Errorf("%s is incomplete: %+v", f.Kind, f)
				}
			}
		})
	}
}

// TestAdvice makes sure that a lever is advised only where the numbers support it.
func TestAdvice(t *testing.T) {
	for _, f := range Judge(&recording.Recording{Heap: heapOf(10*mib, arena(60*mib, 300*mib))}) {
		if strings.Contains(f.Next, "arena_max") || strings.Contains(f.Next, "call malloc_trim") {
			t.Errorf("%s advises %q for a main arena that a trim cannot empty", f.Kind, f.Next)
		}
	}
	waiting := &recording.Recording{
		Heap:  heapOf(10*mib, arena(0, 0), arena(mib, 90*mib), arena(mib, 90*mib), arena(mib, 90*mib)),
		Locks: &recording.Locks{Locks: []recording.Lock{{Kind: "arena", Waits: 12}}},
	}
	for _, f := range Judge(waiting) {
		if f.Kind == "arena-sprawl" && !strings.Contains(f.Next, "already wait") {
			t.Errorf("an arena cap is advised without a word on the threads that wait: %q", f.Next)
		}
	}
}

func TestTrimsSeen(t *testing.T) {
	rec := &recording.Recording{Arenas: &recording.Arenas{Trims: []recording.Trim{
		{DurationNS: 2e6, RSSBeforeBytes: 500 * mib, RSSAfterBytes: 100 * mib},
		{DurationNS: 4e6, RSSBeforeBytes: 300 * mib, RSSAfterBytes: 300 * mib},
	}}}
	found := Judge(rec)
	if len(found) != 1 || found[0].Kind != "trim-effective" || found[0].Evidence["returned_bytes"] != 400*mib {
		t.Errorf("%+v", found)
	}
	rec.Arenas.Trims = rec.Arenas.Trims[1:]
	if found := Judge(rec); len(found) != 1 || found[0].Kind != "trim-ineffective" {
		t.Errorf("%+v", found)
	}
}
