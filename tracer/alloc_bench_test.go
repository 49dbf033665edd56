package tracer

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"memtrace/internal/workload"
	"memtrace/tracer/probe"
	"memtrace/tracer/target"
)

// benchPairs and benchDepth are how many pairs one measurement takes, and how many functions
// below the start of the thread.
const (
	benchPairs = 200_000
	benchDepth = 8
)

// BenchmarkPair measures what a pair of malloc and free costs, untraced, with an empty probe
// on each of the two, and traced, all in one run of one process. The yardstick is the pair of
// empty probes: "x-empty" is how many times that the traced pair takes.
func BenchmarkPair(b *testing.B) {
	p := workload.Start(b, workload.Build(b, "pairs.c"))
	p.Expect(b, "ready")
	for b.Loop() {
		untraced := timePair(b, p)
		empty := withEmptyProbes(b, p)
		sampled := withSession(b, p, Options{})
		exact := withSession(b, p, Options{Exact: true})
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(untraced, "untraced-ns")
		b.ReportMetric(empty, "empty-ns")
		b.ReportMetric(sampled, "sampled-ns")
		b.ReportMetric(exact, "exact-ns")
		b.ReportMetric((sampled-untraced)/(empty-untraced), "sampled-x-empty")
		b.ReportMetric((exact-untraced)/(empty-untraced), "exact-x-empty")
	}
}

// timePair has the workload time its pairs: the best of three, because other work on the
// machine can only add.
func timePair(b *testing.B, p *workload.Process) float64 {
	b.Helper()
	best := 0.0
	for range 3 {
		p.Say(b, fmt.Sprint(benchPairs, " ", benchDepth))
		ns, err := strconv.ParseFloat(p.Expect(b, "ns "), 64)
		if err != nil {
			b.Fatal(err)
		}
		if best == 0 || ns < best {
			best = ns
		}
	}
	return best
}

func withSession(b *testing.B, p *workload.Process, o Options) float64 {
	b.Helper()
	o.PID, o.Probes = p.PID(), []string{"alloc"}
	if o.Round == "" {
		o.Round = "none"
	}
	s, err := Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := s.Attach(b.Context()); err != nil {
		b.Fatal(err)
	}
	return timePair(b, p)
}

// withEmptyProbes puts a program that does nothing where the tracer puts its own.
func withEmptyProbes(b *testing.B, p *workload.Process) float64 {
	b.Helper()
	traced, err := target.Open(b.Context(), p.PID())
	if err != nil {
		b.Fatal(err)
	}
	defer traced.Close()
	features, err := probe.DetectFeatures()
	if err != nil {
		b.Fatal(err)
	}
	empty, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "empty", Type: ebpf.Kprobe, AttachType: features.AttachType(probe.Entry), License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer empty.Close()
	file, err := traced.OpenMapped(traced.Allocator.Mapping)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	var sites []probe.Site
	for _, name := range []string{"malloc", "free"} {
		entry, found := traced.Allocator.Find(name)
		if !found {
			b.Fatalf("the allocator has no %s", name)
		}
		sites = append(sites, entry.Site(0))
	}
	links, err := features.Attach(empty, file, sites, p.PID(), probe.Entry)
	if err != nil {
		b.Fatal(err)
	}
	defer links.Close()
	return timePair(b, p)
}
