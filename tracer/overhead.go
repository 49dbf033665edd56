package tracer

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"memtrace/tracer/recording"
)

// estimate says what the trace has cost so far.
func (s *Session) estimate() (recording.Overhead, error) {
	spent, err := s.cost.look()
	if err != nil {
		return recording.Overhead{}, err
	}
	o := recording.Overhead{
		AttachNS: s.attachNS, DutyCycle: 1, HitCostNS: s.cost.hitNS("alloc"), Coverage: map[string]float64{},
		ProbeHits: spent.hits, ProbeTimeNS: int64(spent.probesNS),
		OwnRSSBytes: residentBytes(),
	}
	for _, f := range s.families {
		if !s.options.probes(f.name()) {
			continue
		}
		o.Coverage[f.name()] = 1
		if cycled, ok := f.(cycled); ok {
			o.Coverage[f.name()] = cycled.share()
		}
	}
	if share, found := o.Coverage["alloc"]; found {
		o.DutyCycle = share
	}
	if own := spent.ownNS(); own > 0 {
		o.TargetSlowdown = spent.probesNS / own
	} else if spent.probesNS > 0 {
		o.TargetSlowdown = 1
	}
	if elapsed := s.elapsedNS(); elapsed > 0 {
		o.WallSlowdown = spent.probesNS / float64(elapsed)
	}
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err == nil {
		o.OwnCPUNS = usage.Utime.Nano() + usage.Stime.Nano()
	}
	return o, nil
}

// residentBytes is memtrace's own resident memory, 0 when unknown.
func residentBytes() uint64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}
