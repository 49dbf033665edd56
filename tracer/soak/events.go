package soak

import (
	"fmt"
	"math"
	"time"

	"memtrace/tracer/recording"
)

// The least change between two samples that is told as an event.
const (
	suddenShare = 0.10 // of committed memory
	suddenBytes = 16 << 20
	pressurePct = 10 // percent of the time that somebody was stalled
	mostEvents  = 50
)

// events tells what happened between the samples: notes, jumps of memory with what else
// changed in the same interval, and the control group's own events.
func events(samples []recording.Sample) []recording.SoakEvent {
	found := []recording.SoakEvent{}
	add := func(sample recording.Sample, what string) {
		if len(found) < mostEvents {
			found = append(found, recording.SoakEvent{Time: sample.Time, What: what})
		}
	}
	for i, sample := range samples {
		if sample.Note != "" && (i == 0 || samples[i-1].Note != sample.Note) {
			add(sample, sample.Note)
		}
		if i == 0 {
			continue
		}
		before := samples[i-1]
		change := float64(sample.CommittedBytes) - float64(before.CommittedBytes)
		if math.Abs(change) > math.Max(suddenBytes, suddenShare*float64(before.CommittedBytes)) {
			add(sample, fmt.Sprintf("committed memory changed by %s to %s%s", signed(change), size(float64(sample.CommittedBytes)), meanwhile(before, sample)))
		} else if what := groupEvents(before, sample); what != "" {
			add(sample, what)
		}
	}
	return found
}

// meanwhile lists what else changed in the interval of a jump.
func meanwhile(before, after recording.Sample) string {
	text := ""
	add := func(what string) {
		if text == "" {
			text = "; meanwhile " + what
			return
		}
		text += ", " + what
	}
	if after.Heap && before.Heap {
		if change := float64(after.LiveBytes) - float64(before.LiveBytes); math.Abs(change) > suddenBytes {
			add("live memory changed by " + signed(change))
		}
		if after.Arenas != before.Arenas {
			add(fmt.Sprintf("arenas went from %d to %d", before.Arenas, after.Arenas))
		}
	}
	if after.Threads != before.Threads {
		add(fmt.Sprintf("threads went from %d to %d", before.Threads, after.Threads))
	}
	if what := groupEvents(before, after); what != "" {
		add(what)
	}
	if after.PSI.MemorySomeAvg10 >= pressurePct {
		add(fmt.Sprintf("the machine was short of memory (%.0f %% stalled)", after.PSI.MemorySomeAvg10))
	}
	if after.PSI.CPUSomeAvg10 >= pressurePct {
		add(fmt.Sprintf("the machine was short of CPU (%.0f %% stalled)", after.PSI.CPUSomeAvg10))
	}
	if after.PSI.IOSomeAvg10 >= pressurePct {
		add(fmt.Sprintf("the machine waited for its disks (%.0f %% stalled)", after.PSI.IOSomeAvg10))
	}
	return text
}

// groupEvents tells which events of the control group were counted in the interval.
func groupEvents(before, after recording.Sample) string {
	switch {
	case after.Cgroup.EventsOOM > before.Cgroup.EventsOOM:
		return "the control group's OOM killer ran"
	case after.Cgroup.EventsMax > before.Cgroup.EventsMax:
		return fmt.Sprintf("the control group hit its limit %d times", after.Cgroup.EventsMax-before.Cgroup.EventsMax)
	case after.Cgroup.EventsHigh > before.Cgroup.EventsHigh:
		return fmt.Sprintf("the control group was throttled above memory.high %d times", after.Cgroup.EventsHigh-before.Cgroup.EventsHigh)
	}
	return ""
}

// size writes bytes for a sentence.
func size(bytes float64) string {
	switch magnitude := math.Abs(bytes); {
	case magnitude >= 1<<30:
		return fmt.Sprintf("%.2f GiB", bytes/(1<<30))
	case magnitude >= 1<<20:
		return fmt.Sprintf("%.1f MiB", bytes/(1<<20))
	default:
		return fmt.Sprintf("%.0f KiB", bytes/(1<<10))
	}
}

// signed writes a change with its sign.
func signed(bytes float64) string {
	if bytes >= 0 {
		return "+" + size(bytes)
	}
	return "-" + size(-bytes)
}

// roughly writes a time span in the unit that fits it.
func roughly(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%.0f hours", d.Hours())
	case d >= 2*time.Minute:
		return fmt.Sprintf("%.0f minutes", d.Minutes())
	}
	return d.Round(time.Second).String()
}
