package tracer

import (
	"testing"

	"memtrace/internal/workload"
)

// BenchmarkRounds measures what rounds and lifetimes add to a pair of malloc and free that is
// only counted, all in one run of one process: "x-counting" is the quotient.
func BenchmarkRounds(b *testing.B) {
	const never = 1 << 40 // bytes between two stacks: none is taken
	p := workload.Start(b, workload.Build(b, "pairs.c"))
	p.Expect(b, "ready")
	for b.Loop() {
		counted := withSession(b, p, Options{SampleBytes: never})
		thread := withSession(b, p, Options{Round: "auto"})
		process := withSession(b, p, Options{Round: "every:50ms"})
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(counted, "counting-ns")
		b.ReportMetric(thread, "rounds-ns")
		b.ReportMetric(thread/counted, "x-counting")
		b.ReportMetric(process/counted, "process-x-counting")
	}
}
