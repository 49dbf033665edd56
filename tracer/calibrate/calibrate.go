// Package calibrate measures what a hit of a probe costs on this machine and kernel, on a
// process of its own: a program of a few instructions that does nothing but pass a probe.
// The target is not touched. It takes a few milliseconds.
package calibrate

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"memtrace/tracer/probe"
)

// Costs is what one hit of a probe with an empty program takes, in nanoseconds of the
// processor, beyond what the same calls take without a probe.
type Costs struct {
	EntryNS   float64 // a probe at an emulated instruction
	SessionNS float64 // the same in a session that does not want the return; 0 without sessions
	// ReturnNS is what the return of a call takes in addition, where it is probed.
	ReturnNS float64
	// StatisticsNS is what the kernel's statistics report as the time of an empty program:
	// the part of every reported time that is their own.
	StatisticsNS float64
}

// Fallback is what is assumed where nothing can be measured: the costs in a virtual machine
// on Linux 6.18.
var Fallback = Costs{EntryNS: 550, SessionNS: 580, ReturnNS: 500, StatisticsNS: 25}

// bursts is how many times the program passes the probe callsInBurst times. The middle one
// counts: the target, too, shares the machine with what else runs on it.
const bursts = 7

// Measure starts the program, measures, and ends it.
func Measure(features probe.Features) (costs Costs, err error) {
	p, err := startPacer()
	if err != nil {
		return Costs{}, fmt.Errorf("calibrate the cost of a probe: %w", err)
	}
	defer func() { err = errors.Join(err, p.close()) }()
	untraced, err := p.middle()
	if err != nil {
		return Costs{}, fmt.Errorf("calibrate the cost of a probe: %w", err)
	}
	measure := func(kind probe.Kind, result int32, cost *float64, less float64) {
		if err == nil {
			*cost, costs.StatisticsNS, err = p.withProbe(features, kind, result)
			*cost = max(0, *cost-less)
		}
	}
	if !features.Session {
		measure(probe.Return, noReturn, &costs.ReturnNS, untraced)
	} else {
		measure(probe.Session, noReturn, &costs.SessionNS, untraced)
		measure(probe.Session, wantReturn, &costs.ReturnNS, untraced+costs.SessionNS)
	}
	measure(probe.Entry, noReturn, &costs.EntryNS, untraced)
	if err != nil {
		return Costs{}, fmt.Errorf("calibrate the cost of a probe: %w", err)
	}
	return costs, nil
}

// What an empty program returns. Sessions read it.
const (
	wantReturn = 0
	noReturn   = 1
)

// withProbe measures a call that passes an empty program, and what the kernel's statistics
// say of that program.
func (p *pacer) withProbe(features probe.Features, kind probe.Kind, result int32) (callNS, statisticsNS float64, err error) {
	empty, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "memtrace_empty", Type: ebpf.Kprobe, AttachType: features.AttachType(kind), License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, result), asm.Return()},
	})
	if err != nil {
		return 0, 0, fmt.Errorf("load an empty program: %w", err)
	}
	defer empty.Close()
	links, err := features.Attach(empty, p.program, []probe.Site{{Offset: siteOffset}}, p.process.Pid, kind)
	if err != nil {
		return 0, 0, err
	}
	// A link's end waits for the kernel's grace period, which nothing here needs.
	defer func() { go links.Close() }()
	if callNS, err = p.middle(); err != nil {
		return 0, 0, err
	}
	statisticsNS, err = p.statistics(empty)
	return callNS, statisticsNS, err
}

// statistics is the time that the kernel reports for a run of an empty program; that of the
// machine of Fallback where the kernel keeps no statistics.
func (p *pacer) statistics(empty *ebpf.Program) (float64, error) {
	enabled, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return Fallback.StatisticsNS, nil
	}
	defer enabled.Close()
	if _, err := p.burst(); err != nil {
		return 0, err
	}
	stats, err := empty.Stats()
	if err != nil || stats.RunCount == 0 {
		return Fallback.StatisticsNS, nil
	}
	return float64(stats.Runtime.Nanoseconds()) / float64(stats.RunCount), nil
}

// middle is the time of a call in the middle one of a few bursts, in nanoseconds.
func (p *pacer) middle() (float64, error) {
	var times []float64
	for range bursts {
		spent, err := p.burst()
		if err != nil {
			return 0, err
		}
		times = append(times, float64(spent)/callsInBurst)
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// burst has the program pass the probe, and returns the processor time that it took.
func (p *pacer) burst() (ns int64, err error) {
	before, err := p.cpuNS()
	if err != nil {
		return 0, err
	}
	var answer [1]byte
	if _, err := p.say.Write(answer[:]); err != nil {
		return 0, fmt.Errorf("let the calibration program run: %w", err)
	}
	if _, err := p.hear.Read(answer[:]); err != nil {
		return 0, fmt.Errorf("wait for the calibration program: %w", err)
	}
	after, err := p.cpuNS()
	return after - before, err
}

// cpuNS is the program's processor time so far.
func (p *pacer) cpuNS() (int64, error) {
	const scheduled = 2 // CPUCLOCK_SCHED: see clock_getcpuclockid(3)
	var now unix.Timespec
	if err := unix.ClockGettime(int32(^p.process.Pid<<3|scheduled), &now); err != nil {
		return 0, os.NewSyscallError("clock_gettime", err)
	}
	return now.Nano(), nil
}
