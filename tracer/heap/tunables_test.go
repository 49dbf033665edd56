package heap

import (
	"os"
	"os/exec"
	"testing"

	"memtrace/internal/workload"
	"memtrace/tracer/recording"
)

// What the user can turn in glibc changes the heap's shape, and what the limits say.
func TestTunables(t *testing.T) {
	program := workload.Build(t, "heapshape.c")
	limit := func(l recording.Limits) bool { return l.ArenaLimit > 0 && l.ArenaMax == 0 && l.MmapThresholdDynamic }
	for tunables, check := range map[string]func(recording.Limits) bool{
		"":                            limit,
		"glibc.malloc.arena_max=2":    func(l recording.Limits) bool { return l.ArenaMax == 2 && l.ArenaLimit == 2 },
		"glibc.malloc.tcache_count=0": limit,
		"glibc.malloc.tcache_max=64":  limit,
		"glibc.malloc.mxfast=0":       limit,
		"glibc.malloc.perturb=85":     limit,
		"glibc.malloc.hugetlb=1":      limit,
		"glibc.malloc.mmap_threshold=65536": func(l recording.Limits) bool {
			return l.MmapThresholdBytes == 65536 && !l.MmapThresholdDynamic
		},
		"glibc.malloc.trim_threshold=1000000": func(l recording.Limits) bool {
			return l.TrimThresholdBytes == 1000000 && !l.MmapThresholdDynamic
		},
		"glibc.malloc.top_pad=10000000": func(l recording.Limits) bool { return !l.MmapThresholdDynamic },
	} {
		t.Run(tunables, func(t *testing.T) {
			command := exec.Command(program)
			command.Env = append(os.Environ(), "GLIBC_TUNABLES="+tunables)
			p := workload.StartCommand(t, command)
			shaped(t, p, []string{"mixed 5000", "threads 4 1000", "fast 2000 60", "mmapped 3 300000", "top 100000"})
			h := compare(t, p)
			if !check(h.Limits) {
				t.Errorf("limits %+v", h.Limits)
			}
			forecastHolds(t, p)
		})
	}
}

// The mmap threshold rises when a mapped block is freed.
func TestThresholdDrift(t *testing.T) {
	p := workload.Start(t, workload.Build(t, "heapshape.c"))
	shaped(t, p, []string{"drift 8000000"})
	if h := compare(t, p); h.Limits.MmapThresholdBytes < 8000000 || h.Limits.TrimThresholdBytes < 16000000 {
		t.Errorf("limits %+v after a block of 8 MB was freed", h.Limits)
	}
}
