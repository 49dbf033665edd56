package tracer

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"memtrace/tracer/recording"
)

// hitCostNS is what one hit of a probe on an emulated instruction costs the target, with
// the work of the cheapest allocation program, until it is calibrated on the machine.
const hitCostNS = 600

// cost watches the processor time of the target, for the estimate of the slowdown.
type cost struct {
	mutex   sync.Mutex
	pid     int
	startNS int64
	lastNS  int64 // the newest that could be read: a process that has been reaped has none
	ratedAt int64
	rated   recording.AllocationTotals // at ratedAt
}

// begin notes where the target's processor time stands.
func (c *cost) begin(pid int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.pid = pid
	c.ratedAt = monotonicNS()
	if now, err := processCPU(pid); err == nil {
		c.startNS, c.lastNS = now, now
	}
}

// sample looks at the target's processor time again.
func (c *cost) sample() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if now, err := processCPU(c.pid); err == nil {
		c.lastNS = max(c.lastNS, now)
	}
}

// spentNS is the target's processor time since begin.
func (c *cost) spentNS() int64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.lastNS - c.startNS
}

// rates returns allocations and bytes a second since the call before, or since begin.
func (c *cost) rates(nowNS int64, sum recording.AllocationTotals) (allocs, bytes float64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if seconds := float64(nowNS-c.ratedAt) / 1e9; c.ratedAt != 0 && seconds > 0 {
		allocs = float64(sum.Allocs-c.rated.Allocs) / seconds
		bytes = float64(sum.AllocBytes-c.rated.AllocBytes) / seconds
	}
	c.ratedAt, c.rated = nowNS, sum
	return allocs, bytes
}

// processCPU reads a process's clock of processor time, all threads, those that have ended
// included. The clock's number is made of the process id as clock_getcpuclockid(3) does.
func processCPU(pid int) (int64, error) {
	const scheduled = 2 // CPUCLOCK_SCHED
	var now unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &now); err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	return now.Nano(), nil
}

// estimate says what the trace has cost so far.
func (s *Session) estimate() (recording.Overhead, error) {
	o := recording.Overhead{AttachNS: s.attachNS, DutyCycle: 1, HitCostNS: hitCostNS, Coverage: map[string]float64{}}
	for _, f := range s.families {
		hits, err := f.hits()
		if err != nil {
			return o, err
		}
		o.ProbeHits += hits
		if s.options.probes(f.name()) {
			o.Coverage[f.name()] = 1
		}
		if f, ok := f.(*allocFamily); ok {
			o.DutyCycle = f.coverage.share(monotonicNS())
			o.Coverage[f.name()] = o.DutyCycle
		}
	}
	o.ProbeTimeNS = int64(float64(o.ProbeHits) * o.HitCostNS)
	own := s.cost.spentNS() - o.ProbeTimeNS
	if own > 0 {
		o.TargetSlowdown = float64(o.ProbeTimeNS) / float64(own)
	} else if o.ProbeTimeNS > 0 {
		o.TargetSlowdown = 1
	}
	if elapsed := s.elapsedNS(); elapsed > 0 {
		o.WallSlowdown = float64(o.ProbeTimeNS) / float64(elapsed)
	}
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err == nil {
		o.OwnCPUNS = usage.Utime.Nano() + usage.Stime.Nano()
	}
	o.OwnRSSBytes = residentBytes()
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
