package heap

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"memtrace/internal/workload"
	"memtrace/tracer/recording"
)

// The kernel's own count of each mapping is the truth about what is resident.
func TestResidencyEqualsSmaps(t *testing.T) {
	program := workload.Build(t, "heapshape.c")
	for name, commands := range map[string][]string{
		"holes":         {"holes 20000 700"},
		"after a trim":  {"pins 3000 9000", "trim", "mixed 500"},
		"untouched top": {"untouched 30000000"},
		"only read":     {"reread 30000000"},
		"thread arenas": {"threads 6 4000"},
		"mmapped":       {"mmapped 20 300000"},
	} {
		t.Run(name, func(t *testing.T) {
			p := workload.Start(t, program)
			shaped(t, p, commands)
			h := snapshot(t, p.PID(), Options{})
			addsUp(t, h)
			for _, a := range h.Arenas {
				want := residentIn(t, p.PID(), func(start uint64, name string) bool {
					if a.Main {
						return name == "[heap]"
					}
					return start>>26 == uint64(a.Address)>>26 // its one heap of 64 MiB
				})
				if a.ResidentBytes != want {
					t.Errorf("arena %v: %d bytes resident, the kernel counts %d", a.Address, a.ResidentBytes, want)
				}
			}
			if h.Ledger.MmappedChunkBytes != h.MallInfo.Hblkhd {
				t.Errorf("%d bytes of mmapped chunks resident, %d were written to", h.Ledger.MmappedChunkBytes, h.MallInfo.Hblkhd)
			}
		})
	}
}

// residentIn sums the kernel's Rss of the mappings that are wanted.
func residentIn(t *testing.T, pid int, wanted func(start uint64, name string) bool) uint64 {
	t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var sum uint64
	counting := false
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		var start, end, kib uint64
		if _, err := fmt.Sscanf(fields[0], "%x-%x", &start, &end); err == nil {
			counting = wanted(start, fields[len(fields)-1])
		} else if counting && fields[0] == "Rss:" {
			if _, err := fmt.Sscan(fields[1], &kib); err != nil {
				t.Fatal(err)
			}
			sum += kib << 10
		}
	}
	return sum
}

// What lies in the thread caches is known exactly where one thread freed a few blocks.
func TestThreadCaches(t *testing.T) {
	program := buildForAll(t)
	for release, packages := range map[string][]string{
		"bullseye": {"libc6", "libc6-dev"}, "bookworm": {"libc6", "libc6-dbg"}, "trixie": {"libc6"}, "sid": {"libc6"},
	} {
		t.Run(release, func(t *testing.T) {
			p := startUnder(t, fetchGlibc(t, release, packages...), program)
			shaped(t, p, []string{"fast 5 500", "fast 3 1000"})
			// Chunks of 512 and 1008 bytes: the request and its header, rounded up to 16.
			want := recording.TCache{Threads: 1, Chunks: 8, Bytes: 5*512 + 3*1008}
			if h := snapshot(t, p.PID(), Options{}); h.TCache != want {
				t.Errorf("thread caches %+v, want %+v", h.TCache, want)
			}
		})
	}
}

// The parts add up whatever the two readings say.
func TestSettle(t *testing.T) {
	for _, l := range []recording.Ledger{
		{RSSBytes: 100, FileBytes: 10, ArenaFreeResidentBytes: 20, ArenaLiveResidentBytes: 30, MmappedChunkBytes: 5, StackBytes: 5},
		{RSSBytes: 100, FileBytes: 10, ArenaFreeResidentBytes: 80, ArenaLiveResidentBytes: 30, MmappedChunkBytes: 5, StackBytes: 5},
		{RSSBytes: 100, FileBytes: 100, ArenaFreeResidentBytes: 80},
		{},
	} {
		settle(&l)
		if sum := l.ArenaFreeResidentBytes + l.ArenaLiveResidentBytes + l.MmappedChunkBytes + l.StackBytes + l.FileBytes + l.OtherAnonBytes; sum != l.RSSBytes {
			t.Errorf("%+v: the parts are %d", l, sum)
		}
	}
}
