package output

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memtrace/tracer/recording"
)

// sampleHeap is a service that holds far more than it uses.
func sampleHeap() *recording.Heap {
	const mib = 1 << 20
	h := &recording.Heap{
		Allocator: recording.Allocator{Name: "glibc", Version: "2.36", Path: "/usr/lib/x86_64-linux-gnu/libc.so.6"},
		Context:   recording.HeapContext{PID: 4242, Command: "/usr/bin/ledgerd --config /etc/ledgerd.toml", Threads: 19},
		WalkNS:    212_345_678, Attempts: 1, Consistent: true, Layout: "glibc 2.35–2.38",
		Limits: recording.Limits{ArenaLimit: 16, MmapThresholdBytes: 32 * mib, TrimThresholdBytes: 64 * mib, MmapThresholdDynamic: true},
		TCache: recording.TCache{Threads: 19, Chunks: 1204, Bytes: 310_000},
		MallInfo: recording.MallInfo{Arena: 1400 * mib, Ordblks: 91_022, Smblks: 120, Hblks: 3, Hblkhd: 12 * mib,
			Fsmblks: 5_760, Uordblks: 44 * mib, Fordblks: 1356 * mib, Keepcost: 131_072},
		Ledger: recording.Ledger{RSSBytes: 1420 * mib, PSSBytes: 1410 * mib, SwapBytes: 8 * mib, CommittedBytes: 1413 * mib,
			ArenaLiveResidentBytes: 46 * mib, ArenaFreeResidentBytes: 1240 * mib, MmappedChunkBytes: 12 * mib,
			OtherAnonBytes: 105 * mib, StackBytes: 2 * mib, FileBytes: 15 * mib},
		TrimForecastBytes: 1130 * mib,
		Notes:             []string{"2 of 3 mmapped chunks were recognised (8388608 of 12582912 bytes): their residency is a lower bound"},
	}
	for i := range uint64(9) {
		h.Arenas = append(h.Arenas, recording.Arena{
			Address: recording.Address(0x7f0a_4000_0030 + i<<26), AttachedThreads: i % 4, SystemBytes: 155 * mib,
			LiveBytes: 5*mib - i*300_000, FreeBytes: 150 * mib, FreeResidentBytes: (138 - i*10) * mib, TopResidentBytes: i * 40_000,
			FreeChunks: 10_113, FastbinBytes: 640, LargestFreeBytes: (9 - i) * mib, TrimmableBytes: (125 - i*9) * mib, Heaps: 1 + int(i%3),
			TopBytes: i * 80_000, ResidentBytes: 143 * mib,
		})
	}
	h.Arenas[0].Main = true
	return h
}

func TestHeapText(t *testing.T) {
	torn := sampleHeap()
	torn.Consistent, torn.TrimForecastBytes, torn.TCache = false, 0, recording.TCache{}
	frozen := sampleHeap()
	frozen.Frozen, frozen.FrozenNS, frozen.Arenas = true, 48_000_000, frozen.Arenas[:1]
	for name, h := range map[string]*recording.Heap{"heap": sampleHeap(), "heap_torn": torn, "heap_frozen": frozen} {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			if err := Heap(&text, h, Options{Top: 6}); err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(text.String(), "\n") {
				if columns(line) > pageWidth {
					t.Errorf("%d columns: %q", columns(line), line)
				}
			}
			matchGolden(t, name+".txt", text.Bytes())
		})
	}
}

// matchGolden compares with a file of testdata; MEMTRACE_UPDATE=1 writes it anew.
func matchGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("MEMTRACE_UPDATE") != "" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-golden +written); MEMTRACE_UPDATE=1 accepts it:\n%s", path, diff)
	}
}

// A hostile name must not reach the terminal as it is.
func TestHeapTextHostileName(t *testing.T) {
	h := sampleHeap()
	h.Context.Command = "evil\x1b[31m\nname"
	var text bytes.Buffer
	if err := Heap(&text, h, Options{}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsRune(text.String(), '\x1b') {
		t.Error("an escape sequence of the target's name was written")
	}
}
