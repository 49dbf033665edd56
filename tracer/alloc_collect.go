package tracer

import (
	"context"
	"fmt"
	"math"
	"sort"

	"memtrace/bpf"
	"memtrace/tracer/recording"
)

// maxSites bounds the sites of a recording; those with the fewest bytes are left out.
const maxSites = 2000

// collect fills the allocation section.
func (f *allocFamily) collect(_ context.Context, rec *recording.Recording, names stackNames) error {
	threads, err := f.threads()
	if err != nil {
		return err
	}
	covered, gaps := f.coverage.covered(monotonicNS())
	a := &recording.Allocation{
		Threads: []recording.AllocationThread{}, Sizes: []recording.SizeClass{}, Sites: []recording.Site{},
		Lifetimes: f.returns != bpf.AllocReturnsRETURNS_UNSEEN, FreeSizes: f.headers, Estimated: gaps,
	}
	f.collectThreads(a, threads, names)
	a.Sizes = sizeClasses(threads)
	if seconds := float64(covered) / 1e9; seconds > 0 {
		a.Rate = recording.AllocationRate{
			AllocsPerSecond:     float64(a.Totals.Allocs) / seconds,
			AllocBytesPerSecond: float64(a.Totals.AllocBytes) / seconds,
		}
	}
	if err := f.collectSites(a, names); err != nil {
		return err
	}
	a.Series = f.course.points()
	rec.Allocation = a
	if note := f.returnsNote(); note != "" {
		rec.Notes = append(rec.Notes, note)
	}
	if !gaps {
		return nil
	}
	return f.scale(rec)
}

// collectThreads fills totals and threads.
func (f *allocFamily) collectThreads(a *recording.Allocation, threads []bpf.AllocAllocThread, names stackNames) {
	for slot := range threads {
		t := &threads[slot]
		if t.Hits == 0 {
			continue
		}
		add(&a.Totals, t)
		who := names.thread(uint32(slot))
		a.Threads = append(a.Threads, recording.AllocationThread{
			TID: who.tid, Name: who.name, Allocs: t.Allocs, AllocBytes: t.AllocBytes, Frees: t.Frees, FreeBytes: t.FreeBytes,
			Reallocs: t.Reallocs, ReallocBytes: t.ReallocBytes, RemoteFrees: min(calls(t.RemoteFrees), t.Frees),
		})
	}
	sort.SliceStable(a.Threads, func(i, j int) bool { return a.Threads[i].AllocBytes > a.Threads[j].AllocBytes })
}

// sizeClasses sums the size classes, from the first to the last that is not empty.
func sizeClasses(threads []bpf.AllocAllocThread) []recording.SizeClass {
	classes := make([]recording.SizeClass, len(bpf.AllocAllocThread{}.SizeAllocs))
	first, last := len(classes), -1
	for class := range classes {
		c := &classes[class]
		c.UptoBytes = 1 << class
		for i := range threads {
			c.Allocs += threads[i].SizeAllocs[class]
			c.AllocBytes += threads[i].SizeBytes[class]
		}
		if c.Allocs > 0 {
			first, last = min(first, class), class
		}
	}
	if last < 0 {
		return []recording.SizeClass{}
	}
	return classes[first : last+1]
}

// siteParts is what the maps hold of all sites.
type siteParts struct {
	sites  map[uint64]bpf.AllocAllocSite
	shares map[uint64][]siteShare // by site
	ages   map[uint64]bpf.AllocAllocLifetimes
	live   map[uint64]liveBlocks
}

// siteShare is one thread's share of a site.
type siteShare struct {
	slot uint32
	bpf.AllocAllocShare
}

func (f *allocFamily) readSites() (p siteParts, err error) {
	if p.sites, err = readAll[uint64, bpf.AllocAllocSite](f.objects.AllocSites); err != nil {
		return p, err
	}
	shares, err := readAll[bpf.AllocAllocShareKey, bpf.AllocAllocShare](f.objects.AllocShares)
	if err != nil {
		return p, err
	}
	p.shares = map[uint64][]siteShare{}
	for key, share := range shares {
		p.shares[key.Site] = append(p.shares[key.Site], siteShare{key.Slot, share})
	}
	if p.ages, err = readAll[uint64, bpf.AllocAllocLifetimes](f.objects.AllocAges); err != nil {
		return p, err
	}
	p.live, err = f.live()
	return p, err
}

// collectSites fills the sites, the largest first.
func (f *allocFamily) collectSites(a *recording.Allocation, names stackNames) error {
	parts, err := f.readSites()
	if err != nil {
		return err
	}
	ids := make([]uint64, 0, len(parts.sites))
	for id := range parts.sites {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool {
		x, y := parts.sites[ids[i]], parts.sites[ids[j]]
		if x.AllocBytes != y.AllocBytes {
			return x.AllocBytes > y.AllocBytes
		}
		return ids[i] < ids[j]
	})
	if len(ids) > maxSites {
		a.SitesDropped = len(ids) - maxSites
		ids = ids[:maxSites]
	}
	rounds, err := f.roundsBegun()
	if err != nil {
		return err
	}
	for _, id := range ids {
		a.Sites = append(a.Sites, f.site(id, parts, rounds, names))
	}
	return nil
}

// site describes one site.
func (f *allocFamily) site(id uint64, parts siteParts, rounds map[uint32]uint64, names stackNames) recording.Site {
	from := parts.sites[id]
	live := parts.live[id]
	ages := parts.ages[id]
	site := recording.Site{
		Entry: f.entryName(from.Key.Entry), Stack: names.stack(from.Key.Stack), Threads: []recording.SiteThread{},
		Allocs: calls(from.Allocs), AllocBytes: from.AllocBytes, Sampled: from.Sampled,
		Frees: calls(from.Frees), FreeBytes: from.FreeBytes, LiveBytes: live.bytes, LiveBlocks: calls(live.blocks),
		LifetimeP50NS: medianLifetime(&ages), SameRoundFraction: fraction(from.RoundFreed, from.RoundBorn),
		RemoteFreeFraction: fraction(from.RemoteFrees, from.Frees), LiveSeries: f.course.liveSeries(id),
	}
	for _, share := range parts.shares[id] {
		if share.slot == processSlot {
			continue
		}
		who := names.thread(share.slot)
		site.Threads = append(site.Threads, recording.SiteThread{
			TID: who.tid, Name: who.name, Allocs: calls(share.Allocs), AllocBytes: share.AllocBytes, RoundBytes: share.RoundBytes,
		})
	}
	sort.Slice(site.Threads, func(i, j int) bool {
		x, y := site.Threads[i], site.Threads[j]
		return x.AllocBytes > y.AllocBytes || x.AllocBytes == y.AllocBytes && x.TID < y.TID
	})
	siteRounds(&site, parts.shares[id], rounds)
	return site
}

// siteRounds fills what the site does in a round: means over all rounds of the threads that
// call it, and how much its active rounds differ.
func siteRounds(site *recording.Site, shares []siteShare, rounds map[uint32]uint64) {
	var bytes, weight, total, active uint64
	var squares float64
	for _, share := range shares {
		bytes += share.RoundBytes
		weight += share.RoundAllocs
		active += share.Rounds
		total += max(rounds[share.slot], share.Rounds)
		const unit = 1 << (2 * roundSquareShift)
		last := float64(share.ThisBytes)
		squares += float64(share.Squares)*unit + last*last
	}
	if total == 0 || active == 0 {
		return
	}
	site.RoundsActive, site.RoundBytes = active, bytes
	site.BytesPerRound = float64(bytes) / float64(total)
	site.AllocsPerRound = float64(weight) / weightOne / float64(total)
	mean := float64(bytes) / float64(active)
	if variance := squares/float64(active) - mean*mean; variance > 0 && mean > 0 {
		site.RoundVariation = math.Sqrt(variance) / mean
	}
}

// roundSquareShift is ROUND_SQUARE_SHIFT of bpf/alloc.h.
const roundSquareShift = 6

// roundsBegun returns how many rounds each thread has begun; those of the whole process stand
// under slot 0, where the sites' shares of them are.
func (f *allocFamily) roundsBegun() (map[uint32]uint64, error) {
	var process uint64
	if err := f.kernel.maps.Course.Lookup(bpf.SharedCoursePartCOURSE_ROUND, &process); err != nil {
		return nil, fmt.Errorf("read the number of rounds: %w", err)
	}
	slots, err := f.kernel.usedSlots()
	if err != nil {
		return nil, err
	}
	threads, err := readSlots[bpf.SharedThread](f.kernel.maps.Threads, slots)
	if err != nil {
		return nil, err
	}
	rounds := map[uint32]uint64{processSlot: process}
	for slot := range threads {
		if threads[slot].Round > 0 {
			rounds[uint32(slot)] = threads[slot].Round
		}
	}
	return rounds, nil
}

// processSlot is SLOT_NONE of bpf/thread.h: a site's share of it is in the rounds of the
// whole process.
const processSlot = 0

func (f *allocFamily) entryName(index uint32) string {
	if int(index) < len(f.entries) {
		return f.entries[index]
	}
	return ""
}

// fraction is part of whole, 0 without a whole.
func fraction(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return min(1, float64(part)/float64(whole))
}
