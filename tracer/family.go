package tracer

import (
	"context"

	"memtrace/tracer/recording"
)

// family is one group of probes: loaded, attached, paused, collected and closed together.
// The session calls load and attach once, pause and resume in turns while it runs, collect
// at the end and for live snapshots, and close once on every path.
type family interface {
	// name is the family's name in --probes and in the recording: "alloc", "arena",
	// "lock", "sched", "mmap", "round".
	name() string
	// load loads the family's BPF objects with the shared maps and sets their constants.
	load(ctx context.Context, k *kernel, t *tracee) error
	// attach puts the probes in.
	attach(ctx context.Context) error
	// pause takes the costly probes out for a while, and resume puts them in again: the
	// duty cycle. A family whose state cannot stand a gap ignores both.
	pause() error
	resume() error
	// hits returns how often the family's probes have run, for the estimate of the overhead.
	hits() (uint64, error)
	// collect fills the family's section of the recording.
	collect(ctx context.Context, rec *recording.Recording, names stackNames) error
	close() error
}

// freezer is a family whose figures must stand still while they are read: stop takes its
// probes out for good, at the end of the trace and before collect. Families that read what
// others count come later in the table and are stopped before them.
type freezer interface{ stop() error }

// ticker is a family that keeps the course of the trace: tick is called about once a
// second, at a time in nanoseconds since the start.
type ticker interface{ tick(atNS int64) error }

// cycled is a family whose probes the governor takes out and puts in again: share is the
// part of the trace during which they were in. slice is called every now and then while they
// are in.
type cycled interface {
	share() float64
	slice() error
}

// meter is a family that can say what was allocated so far.
type meter interface {
	totals() (recording.AllocationTotals, error)
}

// stackNames turns the numbers that the kernel half hands over into what people read.
type stackNames interface {
	// stack returns the named frames, leaf first, of a stack that the kernel half stored
	// under id; one frame that says "stack lost" where it could not be stored.
	stack(id uint64) recording.Stack
	// thread tells whose slot it is.
	thread(slot uint32) threadName
}

// threadName is one thread of the target, as memtrace's own PID namespace numbers it.
type threadName struct {
	pid  int
	tid  int
	name string
}

// familyTable lists the families in the order in which they are loaded and attached: what
// others read from comes first. Each family's file adds its row here.
var familyTable = []familyRow{
	{"exec", newExecFamily, func(Options) bool { return true }},
	// The scheduler probes give every thread its slot, which is safe before others run.
	{"sched", newSchedFamily, func(o Options) bool { return o.probes("sched") }},
	{"alloc", newAllocFamily, func(o Options) bool { return o.probes("alloc") }},
	{"lock", newLockFamily, func(o Options) bool { return o.probes("lock") }},
	{"round", newRoundFamily, func(o Options) bool { return o.Round != "none" }},
	{"mmap", newMmapFamily, func(o Options) bool { return o.probes("mmap") || o.probes("arena") }},
	{"arena", newArenaFamily, func(o Options) bool { return o.probes("arena") }},
	{"heap", newHeapFamily, func(o Options) bool { return o.probes("arena") }},
	{"fork", newForkFamily, func(o Options) bool { return o.FollowForks }},
}

// familyRow is one row of familyTable.
type familyRow struct {
	name   string
	make   func() family
	wanted func(Options) bool
}

// families returns a new family for every row that the options ask for.
func families(o Options) []family {
	var chosen []family
	for _, row := range familyTable {
		if row.wanted(o) {
			chosen = append(chosen, row.make())
		}
	}
	return chosen
}
