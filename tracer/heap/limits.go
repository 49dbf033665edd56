package heap

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"memtrace/tracer/recording"
)

// arenasPerCore is NARENAS_FROM_NCORES on 64-bit machines (malloc/malloc.c).
const arenasPerCore = 8

// limits is how glibc is set up, from mp_.
func (p *pass) limits() recording.Limits {
	l := recording.Limits{
		ArenaMax:             p.params.arenaMax,
		ArenaLimit:           p.params.arenaMax,
		MmapThresholdBytes:   p.params.mmapThreshold,
		TrimThresholdBytes:   p.params.trimThreshold,
		MmapThresholdDynamic: !p.params.fixedThreshold,
	}
	if l.ArenaLimit == 0 {
		l.ArenaLimit = arenasPerCore * uint64(p.cores)
	}
	return l
}

// coresSeen is the number of cores that glibc counts for its arena limit: those that the
// process may run on, or all that are online, depending on the version.
func coresSeen(pid int, l layout) int {
	var mask unix.CPUSet
	if l.affinityCores && unix.SchedGetaffinity(pid, &mask) == nil && mask.Count() > 0 {
		return mask.Count()
	}
	if online, err := os.ReadFile("/sys/devices/system/cpu/online"); err == nil {
		if n := countList(strings.TrimSpace(string(online))); n > 0 {
			return n
		}
	}
	return 1
}

// countList counts the members of a list such as "0-3,8".
func countList(list string) int {
	count := 0
	for _, part := range strings.Split(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			return 0
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(last); err != nil || to < from {
				return 0
			}
		}
		count += to - from + 1
	}
	return count
}
