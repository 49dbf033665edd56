package compare

import (
	"math"
	"time"

	"memtrace/tracer/recording"
)

// OfRecording makes a side of a recording.
func OfRecording(rec *recording.Recording) Side {
	s := Side{rec: rec, target: rec.Target, readings: map[string]reading{}}
	s.about = recording.ComparisonSide{Kind: "recording", Command: rec.Target.Command, PID: rec.Target.PID,
		Started: rec.Session.Started, DurationNS: rec.Session.DurationNS}
	s.readings["threads"] = reading{value: float64(rec.Target.Threads)}
	s.heap(rec)
	if rec.Arenas != nil {
		s.readings["arenas created"] = reading{value: float64(len(rec.Arenas.Created))}
	}
	seconds := rec.Session.Duration().Seconds()
	if seconds <= 0 {
		s.notes = append(s.notes, "its duration is unknown, so that it has no rates")
		return s
	}
	s.churn(rec, seconds)
	s.rounds(rec, seconds)
	s.locks(rec, seconds)
	s.scheduling(rec, seconds)
	return s
}

// heap reads the memory at the end. The error of a single look is how far the process moved
// meanwhile by itself, where it had settled before the trace.
func (s *Side) heap(rec *recording.Recording) {
	if rec.Heap == nil {
		return
	}
	for name, value := range memory(rec.Heap) {
		s.readings[name] = reading{value: value}
	}
	if before := rec.HeapBefore; before != nil && settled(rec) {
		for name, value := range memory(before) {
			now := s.readings[name]
			now.standard = math.Abs(now.value-value) / 2
			s.readings[name] = now
		}
	}
}

// settled tells whether the process had run for long when the trace began.
func settled(rec *recording.Recording) bool {
	age := rec.Session.Started.Sub(rec.Target.Started)
	return !rec.Target.Started.IsZero() && age > max(rec.Session.Duration(), 10*time.Second)
}

// memory is what a heap holds, by the names of the table.
func memory(h *recording.Heap) map[string]float64 {
	return map[string]float64{
		"committed": float64(h.Ledger.CommittedBytes), "resident": float64(h.Ledger.RSSBytes), "live": float64(h.LiveBytes()),
		"free": float64(h.MallInfo.Fordblks), "free, resident": float64(h.Ledger.ArenaFreeResidentBytes),
		"malloc_trim would return": float64(h.TrimForecastBytes), "arenas": float64(len(h.Arenas)),
	}
}

// churn reads the allocation rates; the series of slices tells their scatter.
func (s *Side) churn(rec *recording.Recording, seconds float64) {
	a := rec.Allocation
	if a == nil {
		return
	}
	var bytes, allocs, frees []float64
	from := int64(0)
	for _, point := range a.Series {
		if slice := float64(point.TimeNS-from) / 1e9 * point.Coverage; slice > 0 { // the time the probes were in
			bytes = append(bytes, float64(point.AllocBytes)/slice)
			allocs = append(allocs, float64(point.Allocs)/slice)
			frees = append(frees, float64(point.Frees)/slice)
		}
		from = point.TimeNS
	}
	rate := func(name string, total uint64, series []float64) {
		value := float64(total) / seconds
		s.readings[name] = reading{value, math.Hypot(mean(series).standard, value*a.RelativeError/confidence)}
	}
	rate("allocated", a.Totals.AllocBytes, bytes)
	rate("allocations", a.Totals.Allocs, allocs)
	rate("frees", a.Totals.Frees, frees)
	if m := rec.Mmap; m != nil {
		s.readings["mapped outside malloc"] = scaled(float64(m.Totals.MappedBytes)/seconds, float64(m.Totals.Maps))
	}
}

// rounds reads what a round allocates.
func (s *Side) rounds(rec *recording.Recording, seconds float64) {
	r := rec.Rounds
	if r == nil || r.Count == 0 {
		return
	}
	var bytes, allocs []float64
	for _, round := range r.Series {
		bytes = append(bytes, float64(round.AllocBytes))
		allocs = append(allocs, float64(round.Allocs))
	}
	s.readings["rounds"] = perSecond(float64(r.Count), seconds)
	s.readings["allocated a round"] = reading{r.Bytes.Mean, mean(bytes).standard}
	s.readings["allocations a round"] = reading{r.Allocs.Mean, mean(allocs).standard}
}

// locks sums the locks that threads contend for; waiting for work is no contention.
func (s *Side) locks(rec *recording.Recording, seconds float64) {
	if rec.Locks == nil {
		return
	}
	var waits, waited, handoffs float64
	for _, lock := range rec.Locks.Locks {
		if lock.Parked() {
			continue
		}
		waits += float64(lock.Waits)
		waited += float64(lock.WaitNS.Total)
		handoffs += float64(lock.Handoffs)
	}
	s.readings["lock waits"] = perSecond(waits, seconds)
	s.readings["lock wait time"] = scaled(waited/seconds, waits)
	s.readings["lock handoffs"] = perSecond(handoffs, seconds)
	calls := rec.Locks.Calls
	s.readings["futex calls in vain"] = perSecond(float64(calls.EAgain)+float64(calls.EmptyWakes), seconds)
}

// scheduling sums the threads.
func (s *Side) scheduling(rec *recording.Recording, seconds float64) {
	if rec.Scheduling == nil {
		return
	}
	var voluntary, nonvoluntary, cpu, runnable float64
	for _, t := range rec.Scheduling.Threads {
		voluntary += float64(t.Voluntary)
		nonvoluntary += float64(t.Nonvoluntary)
		cpu += float64(t.CPUNS)
		runnable += float64(t.RunnableWaitNS)
	}
	s.readings["voluntary switches"] = perSecond(voluntary, seconds)
	s.readings["nonvoluntary switches"] = perSecond(nonvoluntary, seconds)
	s.readings["CPU time"] = scaled(cpu/seconds, voluntary+nonvoluntary)
	s.readings["runnable, not running"] = scaled(runnable/seconds, voluntary+nonvoluntary)
}
