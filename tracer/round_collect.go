package tracer

import (
	"context"
	"sort"

	"memtrace/bpf"
	"memtrace/tracer/recording"
)

// collect fills the rounds section.
func (f *roundFamily) collect(_ context.Context, rec *recording.Recording, names stackNames) error {
	if err := f.beside.failure(); err != nil {
		return err
	}
	// The log first: what it holds is in the sums, which are read after it.
	if err := f.log.drain(!f.beside.active()); err != nil {
		return err
	}
	threads, err := f.threads()
	if err != nil {
		return err
	}
	f.log.mutex.Lock()
	defer f.log.mutex.Unlock()
	rounds := &recording.Rounds{
		Spec: f.tracee.options.Round, PerThread: f.spec.perThread(), Threads: []recording.RoundThread{}, Series: []recording.Round{},
	}
	all := f.log.boundaries.sums
	if f.spec.perThread() {
		all = f.collectThreads(rounds, threads, names)
	} else {
		f.collectProcess(rounds, &all)
	}
	describeRounds(rounds, &all, &f.log.all)
	rec.Rounds = rounds
	shareRounds(rec)
	return nil
}

// collectThreads describes each thread's rounds and returns the sums over all threads.
func (f *roundFamily) collectThreads(rounds *recording.Rounds, threads []bpf.RoundRoundThread, names stackNames) bpf.RoundRoundSums {
	var all bpf.RoundRoundSums
	slots := []uint32{}
	for slot := range threads {
		joinSums(&all, &threads[slot].Sums)
		if threads[slot].Sums.Count > 0 {
			slots = append(slots, uint32(slot))
		}
	}
	sort.SliceStable(slots, func(i, j int) bool { // busiest first
		x, y := &threads[slots[i]].Sums, &threads[slots[j]].Sums
		return x.AllocBytes > y.AllocBytes || x.AllocBytes == y.AllocBytes && x.CpuNs > y.CpuNs
	})
	for rank, slot := range slots {
		course := f.log.threads[slot]
		if course == nil {
			course = &roundCourse{}
		}
		who := names.thread(slot)
		thread := describeThread(&threads[slot].Sums, course)
		thread.TID, thread.Name, thread.Wait = who.tid, who.name, roundCallName(threads[slot].Wait)
		rounds.Threads = append(rounds.Threads, thread)
		if rank < maxSeriesThreads {
			rounds.Series = append(rounds.Series, course.series.rounds...)
		}
	}
	sort.SliceStable(rounds.Series, func(i, j int) bool { return rounds.Series[i].StartNS < rounds.Series[j].StartNS })
	return all
}

// collectProcess describes rounds of the whole process.
func (f *roundFamily) collectProcess(rounds *recording.Rounds, sums *bpf.RoundRoundSums) {
	if sums.Count > 0 {
		rounds.Threads = append(rounds.Threads, describeThread(sums, &f.log.all))
	}
	rounds.Series = append(rounds.Series, f.log.all.series.rounds...)
}

// describeRounds fills what is known of all rounds.
func describeRounds(r *recording.Rounds, sums *bpf.RoundRoundSums, course *roundCourse) {
	whole := describeThread(sums, course)
	r.Count, r.Allocs, r.Bytes = whole.Count, whole.Allocs, whole.Bytes
	r.DurationNS, r.CPUNS = whole.DurationNS, whole.CPUNS
	r.IdleNS = distribution(sums.IdleNs, sums.MaxIdleNs, sums.Count, &course.idle)
	r.Missed, r.Incomplete = sums.Lost, sums.Incomplete
	r.BytesHistogram = bytesHistogram(sums)
}

// describeThread fills what is known of one thread's rounds. The mean, the maximum and the
// counts are of all rounds; the percentiles of those that the log had room for. What was
// allocated is known of the complete ones.
func describeThread(s *bpf.RoundRoundSums, c *roundCourse) recording.RoundThread {
	complete := s.Count - s.Incomplete
	return recording.RoundThread{
		Count:      s.Count,
		Incomplete: s.Incomplete,
		Allocs:     distribution(s.Allocs, s.MaxAllocs, complete, &c.allocs),
		Bytes:      distribution(s.AllocBytes, s.MaxAllocBytes, complete, &c.bytes),
		DurationNS: distribution(s.DurationNs, s.MaxDurationNs, s.Count, &c.duration),
		CPUNS:      distribution(s.CpuNs, s.MaxCpuNs, s.Count, &c.cpu),
		PeriodNS:   distribution(s.PeriodNs, s.MaxPeriodNs, s.Count, &c.period),
		Writes:     s.Writes, Wakes: s.Wakes, Timeouts: s.Timeouts,
	}
}

// distribution sums up a quantity; a percentile, which may be rounded, is no more than the maximum.
func distribution(sum, most, count uint64, values *tally) recording.Distribution {
	if count == 0 {
		return recording.Distribution{}
	}
	p := values.percentiles(0.5, 0.99)
	d := recording.Distribution{Mean: float64(sum) / float64(count), Max: float64(most)}
	d.P50, d.P99 = min(p[0], d.Max), min(p[1], d.Max)
	return d
}

// bytesHistogram counts the rounds by bytes, from the first class to the last that is not
// empty.
func bytesHistogram(s *bpf.RoundRoundSums) []recording.RoundBucket {
	buckets := []recording.RoundBucket{}
	last := -1
	for class, count := range s.ByBytes {
		if count > 0 {
			last = class
		}
	}
	for class, count := range s.ByBytes[:last+1] {
		if count > 0 || len(buckets) > 0 {
			buckets = append(buckets, recording.RoundBucket{UptoBytes: 1 << class, Rounds: count})
		}
	}
	return buckets
}
