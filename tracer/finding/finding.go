// Package finding judges recordings: pure functions from the numbers of a trace to what
// they mean and what to do next. One kind of finding is one file; a new one is a new file
// and one row in judges.
//
// The kinds, and what each says, are the project's contract. Two rules hold for all: a
// process with nothing wrong yields neither a high nor a medium finding, and advice is given
// only where the numbers next to it support it.
package finding

import (
	"sort"

	"memtrace/tracer/recording"
)

// judge looks at a whole recording for one kind of finding. Sections that are absent must
// yield nothing.
type judge func(*recording.Recording) []recording.Finding

// judges in the order in which findings of equal severity are told.
var judges = []judge{
	arenaRetention,
	arenaSprawl,
	mainArenaFragmentation,
	thresholdDrift,
	trimEffect,
	trimStall,
	mmapRetention,
	lockConvoy,
	lockContention,
	arenaLockContention,
	futexStorm,
	cpuContention,
	leak,
	roundChurn,
	busyIdle,
	crossThreadFree,
	plateau,
}

// Judge returns the findings of a recording, the most severe first. It never returns nil.
func Judge(rec *recording.Recording) []recording.Finding {
	found := []recording.Finding{}
	for _, judge := range judges {
		found = append(found, judge(rec)...)
	}
	sort.SliceStable(found, func(i, j int) bool {
		return found[i].Severity.Rank() < found[j].Severity.Rank()
	})
	return found
}
