package compare

import (
	"time"

	"memtrace/tracer/finding/trend"
	"memtrace/tracer/recording"
)

// OfSoak makes a side of each start in a soak, in their order.
func OfSoak(soak *recording.Soak) []Side {
	var sides []Side
	from := 0
	for i := 1; i <= len(soak.Samples); i++ {
		if i < len(soak.Samples) && !soak.Samples[i].Start && soak.Samples[i].StartTicks == soak.Samples[i-1].StartTicks && soak.Samples[i].PID == soak.Samples[i-1].PID {
			continue
		}
		sides = append(sides, ofStart(soak.Header.Target, soak.Samples[from:i]))
		from = i
	}
	return sides
}

// ofStart makes a side of the samples of one start; its warm-up is left out.
func ofStart(target recording.Target, samples []recording.Sample) Side {
	s := Side{target: target, readings: map[string]reading{}}
	first, last := samples[0], samples[len(samples)-1]
	s.about = recording.ComparisonSide{Kind: "soak", Command: target.Command, PID: first.PID, Started: first.Time,
		DurationNS: since(first, last).Nanoseconds(), Samples: len(samples)}
	verdict := trend.Judge(committed(samples))
	s.samples = samples
	if verdict.WarmUpEnd > 0 {
		for len(s.samples) > 1 && since(first, s.samples[0]) < verdict.WarmUpEnd {
			s.samples = s.samples[1:]
		}
	}
	if verdict.Kind == trend.Leak || verdict.Kind == trend.WarmUp {
		s.notes = append(s.notes, "its committed memory still grows ("+string(verdict.Kind)+"): the level that is compared is only its middle")
	}
	s.levels()
	s.rates()
	return s
}

// committed is the series that tells how long a start warmed up.
func committed(samples []recording.Sample) []trend.Point {
	var points []trend.Point
	for _, sample := range samples {
		points = append(points, trend.Point{At: since(samples[0], sample), Bytes: float64(sample.CommittedBytes)})
	}
	return points
}

// since is the time between two samples of one start, on the boot clock where it is known.
func since(from, to recording.Sample) time.Duration {
	if from.BootNS > 0 && to.BootNS > 0 {
		return time.Duration(to.BootNS - from.BootNS)
	}
	return to.Time.Sub(from.Time)
}

// levels reads the memory.
func (s *Side) levels() {
	take := func(name string, heap bool, value func(recording.Sample) float64) {
		var values []float64
		for _, sample := range s.samples {
			if sample.Heap || !heap {
				values = append(values, value(sample))
			}
		}
		if len(values) > 0 {
			s.readings[name] = level(values)
		}
	}
	take("committed", false, func(x recording.Sample) float64 { return float64(x.CommittedBytes) })
	take("resident", false, func(x recording.Sample) float64 { return float64(x.RSSBytes) })
	take("threads", false, func(x recording.Sample) float64 { return float64(x.Threads) })
	take("live", true, func(x recording.Sample) float64 { return float64(x.LiveBytes) })
	take("free", true, func(x recording.Sample) float64 { return float64(x.FreeBytes) })
	take("free, resident", true, func(x recording.Sample) float64 { return float64(x.FreeResidentBytes) })
	take("malloc_trim would return", true, func(x recording.Sample) float64 { return float64(x.TrimForecastBytes) })
	take("arenas", true, func(x recording.Sample) float64 { return float64(x.Arenas) })
}

// rates reads the counters, whose scatter the intervals between the samples tell.
func (s *Side) rates() {
	take := func(name string, gain func(before, after recording.Sample) float64) {
		var values []float64
		for i := 1; i < len(s.samples); i++ {
			if seconds := since(s.samples[i-1], s.samples[i]).Seconds(); seconds > 0 {
				values = append(values, max(0, gain(s.samples[i-1], s.samples[i]))/seconds)
			}
		}
		if len(values) > 0 {
			s.readings[name] = mean(values)
		}
	}
	take("voluntary switches", func(a, b recording.Sample) float64 { return float64(b.Voluntary) - float64(a.Voluntary) })
	take("nonvoluntary switches", func(a, b recording.Sample) float64 { return float64(b.Nonvoluntary) - float64(a.Nonvoluntary) })
	take("CPU time", func(a, b recording.Sample) float64 { return float64(b.CPUNS - a.CPUNS) })
	for _, sample := range s.samples {
		if sample.Allocs > 0 {
			take("allocated", func(_, b recording.Sample) float64 { return float64(b.AllocBytes) })
			take("allocations", func(_, b recording.Sample) float64 { return float64(b.Allocs) })
			break
		}
	}
}
