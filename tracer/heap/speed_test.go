package heap

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"memtrace/internal/workload"
)

// BenchmarkSnapshot walks heaps of a million chunks and a gigabyte.
func BenchmarkSnapshot(b *testing.B) {
	program := workload.Build(b, "heapshape.c")
	for _, shape := range []string{"holes 1000000 1000", "pins 500000 2000", "fast 1000000 100", "holes 4000000 24"} {
		b.Run(shape, func(b *testing.B) {
			p := workload.Start(b, program)
			p.Expect(b, "ready")
			p.Say(b, shape)
			p.Expect(b, "ok")
			r, err := Open(p.PID())
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			b.ResetTimer()
			for b.Loop() {
				h, err := r.Snapshot(context.Background(), Options{})
				if err != nil || !h.Consistent {
					b.Fatal(err, h)
				}
			}
			b.ReportMetric(float64(peak(b)), "peak-RSS-KiB")
		})
	}
}

// peak is the most memory that this process ever had resident, in KiB.
func peak(b *testing.B) (kib int) {
	for _, line := range status(b) {
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib
		}
	}
	b.Fatal("no VmHWM in /proc/self/status")
	return 0
}

func status(b *testing.B) []string {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}
