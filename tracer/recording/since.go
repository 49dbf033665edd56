package recording

import "sort"

// Since returns what a snapshot adds to an earlier one of the same trace: counts and bytes
// are subtracted; what cannot be told apart by time (percentiles, live bytes, the heap) is
// that of the later snapshot. Neither argument changes.
func (r *Recording) Since(before *Recording) *Recording {
	part := *r
	part.Session.Started = before.Session.Started.Add(before.Session.Duration())
	part.Session.DurationNS = r.Session.DurationNS - before.Session.DurationNS
	part.Notes = append([]string{"counts are those of the last part of a longer trace; percentiles, live bytes and findings are those of the whole"}, r.Notes...)
	if r.Allocation != nil && before.Allocation != nil {
		part.Allocation = r.Allocation.since(before.Allocation, part.Session.Duration().Seconds())
	}
	if r.Scheduling != nil && before.Scheduling != nil {
		part.Scheduling = r.Scheduling.since(before.Scheduling)
	}
	return &part
}

// since subtracts an earlier state; estimates that were corrected downwards become 0.
func (a *Allocation) since(before *Allocation, seconds float64) *Allocation {
	part := *a
	part.Totals = a.Totals.less(before.Totals)
	if seconds > 0 {
		part.Rate = AllocationRate{float64(part.Totals.Allocs) / seconds, float64(part.Totals.AllocBytes) / seconds}
	}
	part.Series = nil
	part.Threads = threadsSince(a.Threads, before.Threads)
	part.Sizes = sizesSince(a.Sizes, before.Sizes)
	part.Sites = sitesSince(a.Sites, before.Sites)
	return &part
}

func threadsSince(now, before []AllocationThread) []AllocationThread {
	type key struct {
		pid, tid int
		name     string
	}
	earlier := map[key]AllocationThread{}
	for _, thread := range before {
		earlier[key{thread.PID, thread.TID, thread.Name}] = thread
	}
	part := make([]AllocationThread, 0, len(now))
	for _, thread := range now {
		was := earlier[key{thread.PID, thread.TID, thread.Name}]
		thread.Allocs = less(thread.Allocs, was.Allocs)
		thread.AllocBytes = less(thread.AllocBytes, was.AllocBytes)
		thread.Frees = less(thread.Frees, was.Frees)
		thread.FreeBytes = less(thread.FreeBytes, was.FreeBytes)
		thread.Reallocs = less(thread.Reallocs, was.Reallocs)
		thread.ReallocBytes = less(thread.ReallocBytes, was.ReallocBytes)
		thread.RemoteFrees = less(thread.RemoteFrees, was.RemoteFrees)
		part = append(part, thread)
	}
	sort.SliceStable(part, func(i, j int) bool { return part[i].AllocBytes > part[j].AllocBytes })
	return part
}

func sizesSince(now, before []SizeClass) []SizeClass {
	earlier := map[uint64]SizeClass{}
	for _, class := range before {
		earlier[class.UptoBytes] = class
	}
	part := make([]SizeClass, 0, len(now))
	for _, class := range now {
		was := earlier[class.UptoBytes]
		class.Allocs, class.AllocBytes = less(class.Allocs, was.Allocs), less(class.AllocBytes, was.AllocBytes)
		if class.Allocs > 0 {
			part = append(part, class)
		}
	}
	return part
}

// sitesSince leaves out sites that were not active; a site is known by its addresses.
func sitesSince(now, before []Site) []Site {
	earlier := map[string]Site{}
	for _, site := range before {
		earlier[site.key()] = site
	}
	part := make([]Site, 0, len(now))
	for _, site := range now {
		was := earlier[site.key()]
		site.Allocs, site.AllocBytes = less(site.Allocs, was.Allocs), less(site.AllocBytes, was.AllocBytes)
		site.Sampled = less(site.Sampled, was.Sampled)
		site.Frees, site.FreeBytes = less(site.Frees, was.Frees), less(site.FreeBytes, was.FreeBytes)
		if site.Allocs > 0 {
			part = append(part, site)
		}
	}
	sort.SliceStable(part, func(i, j int) bool { return part[i].AllocBytes > part[j].AllocBytes })
	return part
}

// key tells sites of one process apart.
func (s Site) key() string {
	key := s.Entry
	for _, frame := range s.Stack {
		key += " " + frame.Address.String()
	}
	return key
}

func (s *Scheduling) since(before *Scheduling) *Scheduling {
	earlier := map[int]ScheduledThread{}
	for _, thread := range before.Threads {
		earlier[thread.TID] = thread
	}
	part := &Scheduling{Threads: make([]ScheduledThread, 0, len(s.Threads))}
	for _, thread := range s.Threads {
		if was, known := earlier[thread.TID]; known && was.Name == thread.Name {
			thread.CPUNS -= was.CPUNS
			thread.Voluntary, thread.Nonvoluntary = less(thread.Voluntary, was.Voluntary), less(thread.Nonvoluntary, was.Nonvoluntary)
			thread.RunnableWaitNS -= was.RunnableWaitNS
			thread.FutexWaitNS -= was.FutexWaitNS
			thread.IdleWaitNS -= was.IdleWaitNS
			thread.OtherWaitNS -= was.OtherWaitNS
		}
		part.Threads = append(part.Threads, thread)
	}
	return part
}

// less subtracts, not below zero.
func less(now, before uint64) uint64 {
	if before > now {
		return 0
	}
	return now - before
}

func (t AllocationTotals) less(before AllocationTotals) AllocationTotals {
	return AllocationTotals{
		Allocs: less(t.Allocs, before.Allocs), AllocBytes: less(t.AllocBytes, before.AllocBytes),
		Frees: less(t.Frees, before.Frees), FreeBytes: less(t.FreeBytes, before.FreeBytes),
		Reallocs: less(t.Reallocs, before.Reallocs), ReallocBytes: less(t.ReallocBytes, before.ReallocBytes),
		Failed: less(t.Failed, before.Failed),
	}
}
