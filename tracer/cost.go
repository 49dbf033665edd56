package tracer

import (
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"memtrace/tracer/calibrate"
	"memtrace/tracer/recording"
)

// cost keeps account of what the trace costs the target: its processor time, and the part
// of it that the probes took. It is shared by the session, its governor and its families.
type cost struct {
	mutex      sync.Mutex
	pid        int
	calibrated calibrate.Costs
	families   []*hitCost
	statistics statisticsWindow
	startNS    int64
	looks      int
	lastNS     int64 // the newest that could be read: a process that has been reaped has none
	ratedAt    int64
	rated      recording.AllocationTotals // at ratedAt
}

// spending is how much processor time the target has had since the trace began.
type spending struct {
	cpuNS    float64
	probesNS float64   // the part that the probes took, an estimate
	byFamily []float64 // of probesNS
	hits     uint64
}

// ownNS is the target's own work.
func (s spending) ownNS() float64 { return max(0, s.cpuNS-s.probesNS) }

// add has the account kept of a family, whose programs these are.
func (c *cost) add(f family, programs []*ebpf.Program) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.families = append(c.families, &hitCost{family: f, programs: programs})
}

// begin notes where the target's processor time stands, before any probe is in.
func (c *cost) begin(pid int, calibrated calibrate.Costs) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.pid, c.calibrated = pid, calibrated
	for _, f := range c.families {
		f.hitNS = f.aroundNS(calibrated) + assumedProgramNS
	}
	c.ratedAt = monotonicNS()
	if now, err := processCPU(c.pid); err == nil {
		c.startNS, c.lastNS = now, now
	}
}

// look reads the target's processor time and the hits.
func (c *cost) look() (spending, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.looks++
	for _, f := range c.families {
		// Families that stay in need not be looked at as often: that costs a look at every thread.
		if _, cycled := f.family.(cycled); !cycled && c.looks%5 != 0 {
			continue
		}
		if err := f.look(); err != nil {
			return spending{}, err
		}
	}
	if now, err := processCPU(c.pid); err == nil {
		c.lastNS = max(c.lastNS, now)
	}
	s := spending{cpuNS: float64(c.lastNS - c.startNS)}
	for _, f := range c.families {
		s.byFamily = append(s.byFamily, f.spentNS)
		s.probesNS += f.spentNS
		s.hits += f.hits
	}
	return s, nil
}

// beginStatistics has the programs' own time taken until endStatistics.
func (c *cost) beginStatistics() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.statistics.begin(c.families)
}

func (c *cost) endStatistics() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.statistics.end(c.families, c.calibrated)
}

// hitNS is what a hit of the named family costs; 0 when it has no probes.
func (c *cost) hitNS(name string) float64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, f := range c.families {
		if f.family.name() == name {
			return f.hitNS
		}
	}
	return 0
}

// close ends statistics that are still kept.
func (c *cost) close() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.statistics.close()
}

// rates returns allocations and bytes a second since the call before, or since begin.
func (c *cost) rates(nowNS int64, sum recording.AllocationTotals) (allocs, bytes float64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if seconds := float64(nowNS-c.ratedAt) / 1e9; c.ratedAt != 0 && seconds > 0 {
		allocs = (float64(sum.Allocs) - float64(c.rated.Allocs)) / seconds
		bytes = (float64(sum.AllocBytes) - float64(c.rated.AllocBytes)) / seconds
	}
	c.ratedAt, c.rated = nowNS, sum
	return max(0, allocs), max(0, bytes)
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
