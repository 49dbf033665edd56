package tracer

import (
	"time"

	"memtrace/tracer/recording"
)

// Progress is what a trace has come to so far.
type Progress struct {
	Elapsed         time.Duration
	AllocsPerSecond float64 // since the last call
	BytesPerSecond  float64
	Lost            uint64
	Slowdown        float64 // estimate, a fraction
}

// Progress looks at the running trace.
func (s *Session) Progress() (Progress, error) {
	p := Progress{Elapsed: time.Duration(s.elapsedNS())}
	for _, f := range s.families {
		f, ok := f.(meter)
		if !ok {
			continue
		}
		sum, err := f.totals()
		if err != nil {
			return p, err
		}
		p.AllocsPerSecond, p.BytesPerSecond = s.cost.rates(monotonicNS(), sum)
	}
	lost, err := s.kernel.losses()
	if err != nil {
		return p, err
	}
	for kind, count := range lost {
		if isLoss(kind) {
			p.Lost += count
		}
	}
	overhead, err := s.estimate()
	p.Slowdown = overhead.TargetSlowdown
	return p, err
}

// Totals returns what was allocated so far; zeros when the alloc probes are off.
func (s *Session) Totals() (recording.AllocationTotals, error) {
	for _, f := range s.families {
		if f, ok := f.(meter); ok {
			return f.totals()
		}
	}
	return recording.AllocationTotals{}, nil
}
