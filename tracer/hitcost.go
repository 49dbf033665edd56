package tracer

import (
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"memtrace/tracer/calibrate"
)

// tracepointNS is what the kernel does around a program at a tracepoint: no trap, so that it
// is not worth a calibration. Measured at 40 to 90 ns in a virtual machine on Linux 6.18.
const tracepointNS = 70

// assumedProgramNS is what an allocation program is taken to do until it has been measured.
const assumedProgramNS = 200

// hitCost is what a hit of one family's probes costs the target: the kernel's work around
// the program, calibrated, and the program's own time, which the kernel's statistics tell
// from the target itself: its stacks are as deep and its memory as cold as they are.
type hitCost struct {
	family   family
	programs []*ebpf.Program
	hitNS    float64
	hits     uint64  // at the last look
	spentNS  float64 // by then
	runs     programRuns
	runsHits uint64 // hits when the statistics began
}

// programRuns is what the kernel's statistics say of a family's programs.
type programRuns struct {
	entries uint64 // runs at the entry of a function, or at a tracepoint
	timeNS  float64
	each    []uint64 // the runs of each program
}

// aroundNS is the kernel's work around the family's programs until they have been measured.
// A family with programs of both kinds has them at tracepoints mostly: the others are at the
// few functions and markers that a user names.
func (c *hitCost) aroundNS(costs calibrate.Costs) float64 {
	around := float64(tracepointNS)
	for i, program := range c.programs {
		if ns := aroundProgramNS(program, costs); i == 0 || ns < around {
			around = ns
		}
	}
	return around
}

// aroundProgramNS is the kernel's work around a run of one program.
func aroundProgramNS(program *ebpf.Program, costs calibrate.Costs) float64 {
	if program.Type() == ebpf.Kprobe {
		return max(costs.EntryNS, costs.SessionNS)
	}
	return tracepointNS
}

// look takes in the hits since the last look.
func (c *hitCost) look() error {
	hits, err := c.family.hits()
	if err != nil {
		return err
	}
	if hits > c.hits {
		c.spentNS += float64(hits-c.hits) * c.hitNS
		c.hits = hits
	}
	return nil
}

// statistics sums what the kernel says of the programs.
func (c *hitCost) statistics() (programRuns, error) {
	var sum programRuns
	for _, program := range c.programs {
		stats, err := program.Stats()
		if err != nil {
			return sum, fmt.Errorf("read the statistics of a probe: %w", err)
		}
		sum.entries += stats.RunCount
		sum.each = append(sum.each, stats.RunCount)
		sum.timeNS += float64(stats.Runtime.Nanoseconds())
	}
	return sum, nil
}

// fewestHits is how many hits a measurement must rest on.
const fewestHits = 500

// measured takes in the statistics since they were enabled. A program that ran more often
// than its family was hit ran at returns too.
func (c *hitCost) measured(costs calibrate.Costs) error {
	now, err := c.statistics()
	if err != nil {
		return err
	}
	runs, timeNS := float64(now.entries-c.runs.entries), now.timeNS-c.runs.timeNS
	hits := float64(c.hits - c.runsHits)
	if hits < fewestHits || runs < fewestHits {
		return nil
	}
	returns := max(0, runs-hits)
	var around float64
	for i, program := range c.programs {
		around += float64(now.each[i]-c.runs.each[i]) * aroundProgramNS(program, costs)
	}
	total := hits*around/runs + returns*costs.ReturnNS + max(0, timeNS-runs*costs.StatisticsNS)
	c.hitNS = total / hits
	return nil
}

// statisticsWindow has the kernel take the time of programs for a while. That costs every
// hit a little, so it is done seldom.
type statisticsWindow struct {
	enabled io.Closer // nil: not now
}

// begin has the statistics kept from now on; a kernel that keeps none leaves the costs as
// they were assumed.
func (w *statisticsWindow) begin(all []*hitCost) error {
	if w.enabled != nil {
		return nil
	}
	enabled, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return nil
	}
	w.enabled = enabled
	for _, c := range all {
		if err := c.look(); err != nil {
			return err
		}
		if c.runs, err = c.statistics(); err != nil {
			return err
		}
		c.runsHits = c.hits
	}
	return nil
}

// end takes in what the statistics say, and no more are kept.
func (w *statisticsWindow) end(all []*hitCost, costs calibrate.Costs) error {
	if w.enabled == nil {
		return nil
	}
	for _, c := range all {
		if err := c.look(); err != nil {
			return err
		}
		if err := c.measured(costs); err != nil {
			return err
		}
	}
	return w.close()
}

func (w *statisticsWindow) close() error {
	if w.enabled == nil {
		return nil
	}
	err := w.enabled.Close()
	w.enabled = nil
	return err
}
