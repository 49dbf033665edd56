package output

import (
	"memtrace/tracer/recording"
)

// allocations adds the sites. What a site's threads allocated is told apart by a label;
// what became of the blocks is known for the site only and stands in a sample without it.
func (b *profileBuilder) allocations(a *recording.Allocation) {
	if a == nil {
		return
	}
	for i := range a.Sites {
		s := &a.Sites[i]
		at := b.place(s.Stack)
		allocs, bytes := atLeastOne(s.Allocs, s.AllocBytes), s.AllocBytes
		for _, t := range s.Threads {
			threadAllocs, threadBytes := min(atLeastOne(t.Allocs, t.AllocBytes), allocs), min(t.AllocBytes, bytes)
			allocs, bytes = allocs-threadAllocs, bytes-threadBytes
			b.add(at, values{allocObjects: threadAllocs, allocSpace: threadBytes}, labels{"thread": t.Name, "entry": s.Entry})
		}
		b.add(at, values{
			allocObjects: atLeastOne(allocs, bytes), allocSpace: bytes,
			inuseObjects: atLeastOne(s.LiveBlocks, s.LiveBytes), inuseSpace: s.LiveBytes,
			roundSpace: roundBytes(s),
		}, labels{"entry": s.Entry})
	}
}

// atLeastOne is a count that goes with bytes: pprof takes 0 blocks of some bytes for an error.
func atLeastOne(count, bytes uint64) uint64 {
	if count == 0 && bytes > 0 {
		return 1
	}
	return count
}

// locks adds the places where threads waited for each other, as lockWaits has them.
func (b *profileBuilder) locks(l *recording.Locks) {
	if l == nil {
		return
	}
	for i := range l.Locks {
		lock := &l.Locks[i]
		if lock.Parked() {
			continue
		}
		for _, w := range lock.Waiters {
			waited := uint64(max(0, w.WaitNS))
			b.add(b.place(w.Stack), values{contentions: atLeastOne(w.Waits, waited), delay: waited},
				labels{"lock": lockName(*lock), "kind": lock.Kind})
		}
	}
}

// arenas adds the places where arenas were made.
func (b *profileBuilder) arenas(a *recording.Arenas) {
	if a == nil {
		return
	}
	for _, event := range a.Created {
		b.add(b.place(event.Stack), values{arenasCreatedType: 1}, labels{"thread": event.Thread, "cause": event.Cause})
	}
}

// mappings adds the places that map memory.
func (b *profileBuilder) mappings(m *recording.Mmap) {
	if m == nil {
		return
	}
	for _, s := range m.Sites {
		b.add(b.place(s.Stack), values{mmapObjects: atLeastOne(s.Maps, s.MappedBytes), mmapSpace: s.MappedBytes}, nil)
	}
}
