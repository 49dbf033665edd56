package compare

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"memtrace/tracer/recording"
)

// warnings tells why two sides may not be comparable.
func warnings(before, after Side) []string {
	all := []string{}
	warn := func(format string, arguments ...any) { all = append(all, fmt.Sprintf(format, arguments...)) }
	for _, note := range before.notes {
		warn("before: %s", note)
	}
	for _, note := range after.notes {
		warn("after: %s", note)
	}
	a, b := before.target, after.target
	switch {
	case program(a) != program(b):
		warn("these are different programs: %q and %q", program(a), program(b))
	case a.BuildID != b.BuildID && a.BuildID != "" && b.BuildID != "":
		warn("these are different builds of %s: sites are matched by their functions' names", program(a))
	}
	if x, y := allocatorName(a.Allocator), allocatorName(b.Allocator); x != y && a.Allocator.Name != "" && b.Allocator.Name != "" {
		warn("the allocators differ: %s and %s", x, y)
	}
	if before.about.Kind != after.about.Kind {
		warn("a %s is held against a %s: only what both hold is compared", before.about.Kind, after.about.Kind)
	}
	if x, y := before.about.DurationNS, after.about.DurationNS; min(x, y) > 0 && max(x, y)/min(x, y) >= 5 {
		warn("one took %d times as long as the other: what happens seldom may be in one only", max(x, y)/min(x, y))
	}
	if before.rec != nil && after.rec != nil {
		all = append(all, sessionWarnings(before.rec, after.rec)...)
	}
	return all
}

// sessionWarnings tells how two traces differ in what they looked at.
func sessionWarnings(before, after *recording.Recording) []string {
	var all []string
	warn := func(format string, arguments ...any) { all = append(all, fmt.Sprintf(format, arguments...)) }
	x, y := before.Session, after.Session
	if x.Started.Equal(y.Started) && !x.Started.IsZero() && before.Target.PID == after.Target.PID {
		warn("this is the same trace twice")
	}
	if x.Exact != y.Exact || x.SampleBytes != y.SampleBytes {
		warn("the sampling differs (%s, %s): sites that one sees the other may miss", sampling(x), sampling(y))
	}
	if !slices.Equal(slices.Sorted(slices.Values(x.Probes)), slices.Sorted(slices.Values(y.Probes))) {
		warn("the probes differ (%s, %s): the target's own costs differ with them", strings.Join(x.Probes, ","), strings.Join(y.Probes, ","))
	}
	if x.Scope != y.Scope {
		warn("the scopes differ (%q, %q)", x.Scope, y.Scope)
	}
	if x.Round != y.Round && before.Rounds != nil && after.Rounds != nil {
		warn("a round is not the same (%s, %s)", x.Round, y.Round)
	}
	if x.Arch != y.Arch || x.Kernel != y.Kernel {
		warn("the machines differ: %s %s and %s %s", x.Kernel, x.Arch, y.Kernel, y.Arch)
	}
	if settled(before) != settled(after) {
		warn("one was traced from its start, the other when it had run for long")
	}
	for name, rec := range map[string]*recording.Recording{"before": before, "after": after} {
		if lost := rec.Losses.SitesLost + rec.Losses.StacksLost; rec.Allocation != nil && lost > rec.Allocation.Totals.Allocs/100 {
			warn("%s: more than 1 %% of the stacks were lost, sites are too small", name)
		}
	}
	slices.Sort(all)
	return all
}

func program(t recording.Target) string {
	if t.Exe != "" {
		return path.Base(t.Exe)
	}
	name, _, _ := strings.Cut(t.Command, " ")
	return path.Base(name)
}

func allocatorName(a recording.Allocator) string { return strings.TrimSpace(a.Name + " " + a.Version) }

func sampling(s recording.Session) string {
	if s.Exact {
		return "every call"
	}
	return fmt.Sprintf("a stack every %d KiB", s.SampleBytes>>10)
}
