package tracer

import (
	"memtrace/bpf"
	"memtrace/tracer/recording"
)

// roundCourse is what is kept of the rounds of one thread, or of the process.
type roundCourse struct {
	allocs, bytes, duration, idle, period, cpu tally
	series                                     roundSeries
}

// add takes in a round. Of one during which the allocation probes were out only the times
// are known.
func (c *roundCourse) add(e *bpf.RoundRoundEvent, tid int, t *tracee) {
	c.duration.add(e.DurationNs)
	c.idle.add(e.IdleNs)
	c.period.add(e.PeriodNs)
	c.cpu.add(e.CpuNs)
	if incomplete(e) {
		return
	}
	c.allocs.add(e.Allocs)
	c.bytes.add(e.AllocBytes)
	c.series.add(describeRound(e, tid, t))
}

// incomplete tells whether the allocation probes were out for a time during a round.
func incomplete(e *bpf.RoundRoundEvent) bool {
	return e.Flags&bpf.RoundRoundFlagsROUND_INCOMPLETE != 0
}

// roundSeries keeps an evenly thinned selection of rounds: when it is full every second one
// goes, and only every second of those that come is taken.
type roundSeries struct {
	rounds []recording.Round
	every  uint64 // one of so many is taken
	seen   uint64
}

// maxSeries bounds the rounds of one thread, maxSeriesThreads the threads that have some.
const (
	maxSeries        = 256
	maxSeriesThreads = 16
)

func (s *roundSeries) add(r recording.Round) {
	s.every = max(s.every, 1)
	if s.seen%s.every == 0 {
		s.rounds = append(s.rounds, r)
	}
	s.seen++
	if len(s.rounds) < maxSeries {
		return
	}
	kept := s.rounds[:0]
	for i := 0; i < len(s.rounds); i += 2 {
		kept = append(kept, s.rounds[i])
	}
	s.rounds = kept
	s.every *= 2
}

// describeRound turns an event into a round of the series.
func describeRound(e *bpf.RoundRoundEvent, tid int, t *tracee) recording.Round {
	return recording.Round{
		Index: e.Index, TID: tid, StartNS: t.since(e.StartNs), DurationNS: int64(e.DurationNs), CPUNS: int64(e.CpuNs),
		Allocs: e.Allocs, AllocBytes: e.AllocBytes, Frees: e.Frees, FreeBytes: e.FreeBytes,
	}
}

// addToSums adds a round to sums, as add_times and add_allocations of bpf/round_thread.h do
// for threads.
func addToSums(s *bpf.RoundRoundSums, e *bpf.RoundRoundEvent) {
	add := func(sum, most *uint64, value uint64) {
		*sum += value
		*most = max(*most, value)
	}
	s.Count++
	add(&s.DurationNs, &s.MaxDurationNs, e.DurationNs)
	add(&s.IdleNs, &s.MaxIdleNs, e.IdleNs)
	add(&s.PeriodNs, &s.MaxPeriodNs, e.PeriodNs)
	add(&s.CpuNs, &s.MaxCpuNs, e.CpuNs)
	if incomplete(e) {
		s.Incomplete++
		return
	}
	add(&s.Allocs, &s.MaxAllocs, e.Allocs)
	add(&s.AllocBytes, &s.MaxAllocBytes, e.AllocBytes)
	s.ByBytes[sizeClass(e.AllocBytes)]++
}

// joinSums adds the sums of another thread.
func joinSums(into, s *bpf.RoundRoundSums) {
	join := func(sum, most *uint64, otherSum, otherMost uint64) {
		*sum += otherSum
		*most = max(*most, otherMost)
	}
	into.Count += s.Count
	into.Incomplete += s.Incomplete
	into.Lost += s.Lost
	join(&into.DurationNs, &into.MaxDurationNs, s.DurationNs, s.MaxDurationNs)
	join(&into.IdleNs, &into.MaxIdleNs, s.IdleNs, s.MaxIdleNs)
	join(&into.PeriodNs, &into.MaxPeriodNs, s.PeriodNs, s.MaxPeriodNs)
	join(&into.CpuNs, &into.MaxCpuNs, s.CpuNs, s.MaxCpuNs)
	join(&into.Allocs, &into.MaxAllocs, s.Allocs, s.MaxAllocs)
	join(&into.AllocBytes, &into.MaxAllocBytes, s.AllocBytes, s.MaxAllocBytes)
	for class := range s.ByBytes {
		into.ByBytes[class] += s.ByBytes[class]
	}
}
