package tracer

import (
	"context"
	"sort"

	"memtrace/bpf"
	"memtrace/tracer/heap"
	"memtrace/tracer/recording"
)

// mapped notes a new mapping of a site.
func (l *mmapLog) mapped(start, length, site uint64) {
	for _, old := range l.space.insert(start, start+length, site) {
		if old.site != allocatorSite {
			l.totals.UnmappedBytes += old.end - old.start // MAP_FIXED has replaced it
		}
	}
	l.count(site, length)
}

// count adds a call and its bytes to a site.
func (l *mmapLog) count(site, length uint64) {
	if site == allocatorSite {
		l.totals.AllocatorBytes += length
		return
	}
	l.totals.Maps++
	l.totals.MappedBytes += length
	counts := l.sites[site]
	if counts == nil {
		if len(l.sites) == maxMmapSites {
			return
		}
		counts = &mmapCounts{}
		l.sites[site] = counts
	}
	counts.maps++
	counts.bytes += length
}

// unmapped notes that a range is gone, whoever had mapped it.
func (l *mmapLog) unmapped(start, length uint64, own bool) {
	l.space.remove(start, start+length)
	if !own {
		l.totals.Unmaps++
		l.totals.UnmappedBytes += length
	}
}

// keepsOld is MREMAP_DONTUNMAP.
const keepsOld = 4

// remapped notes an mremap: what it keeps stays its site's, what it adds is the caller's.
func (l *mmapLog) remapped(e *bpf.MmapMmapEvent, own bool) {
	oldStart, oldLength := e.Arguments[0], pages(e.Arguments[1])
	newStart, newLength := uint64(e.Result), pages(e.Arguments[2])
	site := siteOf(e, own)
	if e.Arguments[3]&keepsOld != 0 || oldLength == 0 {
		l.mapped(newStart, newLength, site) // a second mapping; the first stays
		return
	}
	kept := l.space.remove(oldStart, oldStart+oldLength)
	l.space.remove(newStart, newStart+newLength)
	for _, part := range kept {
		from, to := part.start-oldStart, min(part.end-oldStart, newLength)
		if from < to {
			l.space.insert(newStart+from, newStart+to, part.site)
		}
	}
	switch {
	case newLength > oldLength:
		l.space.insert(newStart+oldLength, newStart+newLength, site)
		l.count(site, newLength-oldLength)
	case !own:
		l.totals.UnmappedBytes += oldLength - newLength
	}
}

// broke notes a call of brk, which returns where the break is then.
func (l *mmapLog) broke(now uint64, own bool) {
	if l.brk != 0 && own && now > l.brk {
		l.totals.AllocatorBytes += now - l.brk
		l.heaps.grown++
	}
	if l.brk != 0 && own && now < l.brk {
		l.heaps.shrunk++
	}
	if l.brk != 0 && !own {
		l.totals.BrkBytes += int64(now - l.brk)
	}
	l.brk = now
}

// Advice by which memory is given back: MADV_DONTNEED, MADV_FREE.
const (
	adviceDontNeed = 4
	adviceFree     = 8
)

func (l *mmapLog) advised(e *bpf.MmapMmapEvent, own bool) {
	if !own && (e.Arguments[2] == adviceDontNeed || e.Arguments[2] == adviceFree) {
		l.totals.DiscardedBytes += pages(e.Arguments[1])
	}
}

// describe makes the section of the recording, the largest sites first.
func (l *mmapLog) describe(ctx context.Context, names stackNames) *recording.Mmap {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	live := map[uint64]uint64{}
	for _, part := range l.space.parts {
		live[part.site] += part.end - part.start
	}
	resident := l.resident(ctx)
	m := &recording.Mmap{Totals: l.totals, Sites: []recording.MmapSite{}}
	for id, counts := range l.sites {
		m.Sites = append(m.Sites, recording.MmapSite{
			Stack: names.stack(id), Maps: counts.maps, MappedBytes: counts.bytes, LiveBytes: live[id], ResidentBytes: resident[id],
		})
	}
	sort.Slice(m.Sites, func(i, j int) bool {
		x, y := m.Sites[i], m.Sites[j]
		return x.MappedBytes > y.MappedBytes || x.MappedBytes == y.MappedBytes && x.LiveBytes > y.LiveBytes
	})
	return m
}

// resident sums by site how much of what is mapped is in memory; nothing is known once the
// process has ended, or when there is too much to look at.
func (l *mmapLog) resident(ctx context.Context) map[uint64]uint64 {
	var ranges [][2]uint64
	var sites []uint64
	for _, part := range l.space.parts {
		if part.site != allocatorSite {
			ranges, sites = append(ranges, [2]uint64{part.start, part.end}), append(sites, part.site)
		}
	}
	sums := map[uint64]uint64{}
	bytes, err := heap.Resident(ctx, l.tracee.pid, ranges)
	if err != nil {
		return sums
	}
	for i, site := range sites {
		sums[site] += bytes[i]
	}
	return sums
}
