// Package vitals reads what /proc tells about a process as a whole: memory, threads, time
// on the processor, context switches. It attaches nothing and stops nothing.
package vitals

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// Vitals are the figures of one moment.
type Vitals struct {
	RSSBytes      uint64
	PSSBytes      uint64
	RSSAnonBytes  uint64
	SwapBytes     uint64
	Threads       int
	CPU           time.Duration // user and system, all threads, ended ones included
	Voluntary     uint64        // context switches of the threads that live
	Nonvoluntary  uint64
	StartTicks    uint64 // since boot; tells one start of a process from the next with its id
	UptimeSeconds float64
}

// ErrGone says that the process has ended.
var ErrGone = errors.New("the process has ended")

// clockTick is USER_HZ, which is 100 on every architecture that Linux's ABI fixes for us
// (amd64 and arm64: include/uapi/asm-generic/param.h).
const clockTick = 10 * time.Millisecond

// Read takes the figures of a process. A zombie counts as gone: it holds no memory.
func Read(pid int) (Vitals, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return Vitals{}, gone(pid, err)
	}
	stat, err := process.Stat()
	if err != nil {
		return Vitals{}, gone(pid, err)
	}
	if stat.State == "Z" || stat.State == "X" {
		return Vitals{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	rollup, err := process.ProcSMapsRollup()
	if err != nil {
		return Vitals{}, gone(pid, err)
	}
	status, err := process.NewStatus()
	if err != nil {
		return Vitals{}, gone(pid, err)
	}
	v := Vitals{
		RSSBytes:     rollup.Rss,
		PSSBytes:     rollup.Pss,
		RSSAnonBytes: status.RssAnon,
		SwapBytes:    rollup.Swap,
		Threads:      stat.NumThreads,
		CPU:          time.Duration(stat.UTime+stat.STime) * clockTick,
		StartTicks:   stat.Starttime,
	}
	v.Voluntary, v.Nonvoluntary = switches(pid)
	v.UptimeSeconds = uptime() - float64(stat.Starttime)*clockTick.Seconds()
	return v, nil
}

// gone turns the errors of a process that ended meanwhile into ErrGone.
func gone(pid int, err error) error {
	if _, statErr := os.Stat("/proc/" + strconv.Itoa(pid)); errors.Is(statErr, os.ErrNotExist) {
		return fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	return fmt.Errorf("read process %d: %w", pid, err)
}

// switches sums the context switches over the threads.
func switches(pid int) (voluntary, nonvoluntary uint64) {
	threads, err := procfs.AllThreads(pid)
	if err != nil {
		return 0, 0
	}
	for _, thread := range threads {
		status, err := thread.NewStatus()
		if err != nil {
			continue // it ended meanwhile
		}
		voluntary += status.VoluntaryCtxtSwitches
		nonvoluntary += status.NonVoluntaryCtxtSwitches
	}
	return voluntary, nonvoluntary
}

// uptime is the time since boot in seconds, suspended time included.
func uptime() float64 {
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return seconds
}
