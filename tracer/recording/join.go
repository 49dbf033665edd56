package recording

import (
	"slices"
	"sort"
)

// OwnProcess makes the recording one of a family of processes: what it holds so far is the
// target's own.
func (r *Recording) OwnProcess(name string, parent int) {
	own := Process{PID: r.Target.PID, Parent: parent, Name: name}
	if a := r.Allocation; a != nil {
		own.Allocs, own.Bytes = a.Totals.Allocs, a.Totals.AllocBytes
		a.belongTo(own.PID)
	}
	r.Target.Processes = []Process{own}
}

// Join adds what a child allocated, and its own children. Its threads and sites stay apart
// by their PID; the totals are those of all processes.
func (r *Recording) Join(process Process, child *Recording) {
	if r.Allocation == nil || child.Allocation == nil {
		return
	}
	if len(child.Target.Processes) == 0 {
		child.OwnProcess(process.Name, process.Parent)
	}
	processes := slices.Clone(child.Target.Processes)
	processes[0].Name, processes[0].Parent = process.Name, process.Parent
	r.Target.Processes = append(r.Target.Processes, processes...)
	r.Allocation.join(child.Allocation)
	r.Losses.join(child.Losses)
	for _, note := range child.Notes {
		if !slices.Contains(r.Notes, note) {
			r.Notes = append(r.Notes, note)
		}
	}
}

// belongTo says whose threads and sites these are.
func (a *Allocation) belongTo(pid int) {
	for i := range a.Threads {
		a.Threads[i].PID = pid
	}
	for i := range a.Sites {
		a.Sites[i].PID = pid
	}
}

func (a *Allocation) join(child *Allocation) {
	t, c := &a.Totals, child.Totals
	t.Allocs += c.Allocs
	t.AllocBytes += c.AllocBytes
	t.Frees += c.Frees
	t.FreeBytes += c.FreeBytes
	t.Reallocs += c.Reallocs
	t.ReallocBytes += c.ReallocBytes
	t.Failed += c.Failed
	a.Rate.AllocsPerSecond += child.Rate.AllocsPerSecond
	a.Rate.AllocBytesPerSecond += child.Rate.AllocBytesPerSecond
	a.Estimated = a.Estimated || child.Estimated
	a.Threads = append(a.Threads, child.Threads...)
	a.Sites = append(a.Sites, child.Sites...)
	a.SitesDropped += child.SitesDropped
	sort.SliceStable(a.Threads, func(i, j int) bool { return a.Threads[i].AllocBytes > a.Threads[j].AllocBytes })
	sort.SliceStable(a.Sites, func(i, j int) bool { return a.Sites[i].AllocBytes > a.Sites[j].AllocBytes })
	a.joinSizes(child.Sizes)
}

// joinSizes adds size classes to those of the same bound.
func (a *Allocation) joinSizes(sizes []SizeClass) {
	for _, class := range sizes {
		at := slices.IndexFunc(a.Sizes, func(own SizeClass) bool { return own.UptoBytes == class.UptoBytes })
		if at < 0 {
			a.Sizes = append(a.Sizes, class)
			continue
		}
		a.Sizes[at].Allocs += class.Allocs
		a.Sizes[at].AllocBytes += class.AllocBytes
	}
	slices.SortFunc(a.Sizes, func(x, y SizeClass) int {
		if x.UptoBytes < y.UptoBytes {
			return -1
		}
		return 1
	})
}

// join adds the counts of what a child's trace lost.
func (l *Losses) join(child Losses) {
	l.StacksLost += child.StacksLost
	l.SitesLost += child.SitesLost
	l.ThreadsLost += child.ThreadsLost
	l.EventsLost += child.EventsLost
	l.BlocksLost += child.BlocksLost
	l.FailedReads += child.FailedReads
	l.UnwindRowsLost += child.UnwindRowsLost
}
