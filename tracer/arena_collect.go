package tracer

import (
	"context"
	"os"

	"memtrace/tracer/recording"
)

// Causes of an arena's creation: see recording.ArenaEvent.
const (
	causeFirst = "first-allocation"
	causeRetry = "retry"
)

// collect fills the arenas section.
func (f *arenaFamily) collect(_ context.Context, rec *recording.Recording, names stackNames) error {
	if !f.glibc() {
		return nil
	}
	if err := f.drain(); err != nil {
		return err
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	log := f.tracee.memory
	log.mutex.Lock()
	defer log.mutex.Unlock()
	heaps := &log.heaps
	a := &recording.Arenas{
		Limit: f.limit, Created: []recording.ArenaEvent{}, Reused: []recording.ArenaEvent{}, Trims: []recording.Trim{},
		Thresholds: []recording.ThresholdRise{}, HeapsGrown: heaps.grown, HeapsShrunk: heaps.shrunk,
		EventsDropped: f.dropped + heaps.dropped, Method: "mmap",
	}
	if f.get != 0 {
		a.Method = "uprobes"
		f.describeGiven(a, names)
	} else {
		f.describeMade(a, heaps, names)
		rec.Notes = append(rec.Notes, "arenas that threads share or use again were not seen: glibc's arena_get2 was not found")
	}
	f.describeTrims(a, names)
	for _, r := range heaps.rises {
		who := names.thread(r.slot)
		a.Thresholds = append(a.Thresholds, recording.ThresholdRise{
			TimeNS: f.tracee.since(r.ns), TID: who.tid, Thread: who.name, BeforeBytes: r.before, AfterBytes: r.after,
			Stack: f.callers(r.stack, names),
		})
	}
	rec.Arenas = a
	return nil
}

// describeGiven lists what arena_get2 has given to threads.
func (f *arenaFamily) describeGiven(a *recording.Arenas, names stackNames) {
	for i := range f.given {
		e := &f.given[i]
		if e.Arena == 0 {
			continue // no arena could be had
		}
		cause := causeFirst
		if e.Avoided != 0 {
			cause = causeRetry
		}
		event := f.event(e.EndNs, e.Arena, e.Slot, cause, e.Stack, names)
		if e.Made > 0 {
			a.Created = append(a.Created, event)
		} else {
			a.Reused = append(a.Reused, event)
		}
	}
}

// describeMade lists the arenas that the allocator's mappings tell of.
func (f *arenaFamily) describeMade(a *recording.Arenas, heaps *heapLog, names stackNames) {
	for _, made := range heaps.made {
		if made.arena == notArena {
			continue
		}
		arena := made.arena
		if arena == 0 {
			arena = made.base // the process ended before it could be asked
		}
		cause := causeFirst
		if made.retry {
			cause = causeRetry
		}
		a.Created = append(a.Created, f.event(made.ns, arena, made.slot, cause, made.stack, names))
	}
}

func (f *arenaFamily) event(ns, arena uint64, slot uint32, cause string, stack uint64, names stackNames) recording.ArenaEvent {
	who := names.thread(slot)
	return recording.ArenaEvent{
		TimeNS: f.tracee.since(ns), Arena: recording.Address(arena), TID: who.tid, Thread: who.name, Cause: cause,
		Stack: f.callers(stack, names),
	}
}

// describeTrims lists the calls of malloc_trim.
func (f *arenaFamily) describeTrims(a *recording.Arenas, names stackNames) {
	page := int64(os.Getpagesize())
	for i := range f.trims {
		e := &f.trims[i]
		who := names.thread(e.Slot)
		a.Trims = append(a.Trims, recording.Trim{
			TimeNS: f.tracee.since(e.StartNs), TID: who.tid, Thread: who.name, DurationNS: int64(e.EndNs - e.StartNs),
			RSSBeforeBytes: pageSum(e.PagesBefore, page), RSSAfterBytes: pageSum(e.PagesAfter, page),
			Returned: e.Result != 0, Waiters: int(e.Woken), WaitNS: int64(e.Woken * (e.EndNs - e.StartNs)), Stack: f.callers(e.Stack, names),
		})
	}
}

func pageSum(pages, page int64) uint64 { return uint64(max(0, pages) * page) }

// callers names a stack without the allocator's own frames: its leaf called the allocator.
func (f *arenaFamily) callers(id uint64, names stackNames) recording.Stack {
	stack := names.stack(id)
	ranges := allocatorRanges(f.tracee)
	own := 0
	for i, frame := range stack {
		if inRanges(ranges, uint64(frame.Address)) {
			own = i + 1
		}
	}
	if own == len(stack) {
		return stack
	}
	return stack[own:]
}
