package output

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"memtrace/tracer/recording"
)

// gather returns the metrics in the text form, for the named metrics only.
func compare(t *testing.T, m *Metrics, want string, names ...string) {
	t.Helper()
	if err := testutil.CollectAndCompare(m, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func site(function string, bytes uint64) recording.Site {
	return recording.Site{Entry: "malloc", AllocBytes: bytes, Stack: recording.Stack{{Function: function}}}
}

func TestMetricsSumThreadsByName(t *testing.T) {
	rec := &recording.Recording{Allocation: &recording.Allocation{Threads: []recording.AllocationThread{
		{TID: 1, Name: "worker", Allocs: 3, AllocBytes: 300}, {TID: 2, Name: "worker", Allocs: 4, AllocBytes: 500}, {TID: 3, Name: "\x1bmain\xff", Allocs: 1, AllocBytes: 7},
	}}}
	m := NewMetrics(func() []MetricsTarget { return []MetricsTarget{{PID: 42, Comm: "scorer", Up: true, Recording: rec}} }, 10, "1.0")
	compare(t, m, `
# HELP memtrace_alloc_bytes_total Bytes of new blocks, as requested.
# TYPE memtrace_alloc_bytes_total counter
memtrace_alloc_bytes_total{comm="scorer",pid="42",thread="?main?"} 7
memtrace_alloc_bytes_total{comm="scorer",pid="42",thread="worker"} 800
# HELP memtrace_target_up Whether the process is being traced.
# TYPE memtrace_target_up gauge
memtrace_target_up{comm="scorer",pid="42"} 1
`, "memtrace_alloc_bytes_total", "memtrace_target_up")
}

// TestMetricsSitesNeverFall lets a site be overtaken: it keeps its series.
func TestMetricsSitesNeverFall(t *testing.T) {
	rec := &recording.Recording{Allocation: &recording.Allocation{Sites: []recording.Site{site("a", 100), site("b", 50), site("c", 10)}}}
	m := NewMetrics(func() []MetricsTarget { return []MetricsTarget{{PID: 1, Comm: "x", Recording: rec}} }, 2, "1.0")
	head := "# HELP memtrace_site_alloc_bytes_total Bytes of new blocks by the function that asked for them, estimated from sampled stacks.\n# TYPE memtrace_site_alloc_bytes_total counter\n"
	compare(t, m, head+`
memtrace_site_alloc_bytes_total{comm="x",pid="1",site="a"} 100
memtrace_site_alloc_bytes_total{comm="x",pid="1",site="b"} 50
memtrace_site_alloc_bytes_total{comm="x",pid="1",site="other"} 10
`, "memtrace_site_alloc_bytes_total")
	rec.Allocation.Sites = []recording.Site{site("c", 900), site("a", 110), site("b", 60)}
	compare(t, m, head+`
memtrace_site_alloc_bytes_total{comm="x",pid="1",site="a"} 110
memtrace_site_alloc_bytes_total{comm="x",pid="1",site="b"} 60
memtrace_site_alloc_bytes_total{comm="x",pid="1",site="other"} 900
`, "memtrace_site_alloc_bytes_total")
}

// TestMetricsAreValid registers everything, with hostile names, in a registry that checks.
func TestMetricsAreValid(t *testing.T) {
	rec := &recording.Recording{
		Allocation: &recording.Allocation{Threads: []recording.AllocationThread{{Name: "a\xffb"}, {Name: "a\xfeb"}}, Sites: []recording.Site{site("operator new<\"x\">\n", 1), {Stack: nil}}},
		Rounds:     &recording.Rounds{Count: 3, BytesHistogram: []recording.RoundBucket{{UptoBytes: 64, Rounds: 1}, {UptoBytes: 128, Rounds: 2}}},
		Arenas:     &recording.Arenas{Trims: []recording.Trim{{DurationNS: 5e6}}},
		Heap:       &recording.Heap{},
		Locks:      &recording.Locks{Locks: []recording.Lock{{Kind: "mutex", Name: "x\x1b"}, {Kind: "mutex", Name: "x\x1c"}}},
		Scheduling: &recording.Scheduling{Threads: []recording.ScheduledThread{{Name: "a\xffb"}, {Name: "a\xfeb"}}},
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewMetrics(func() []MetricsTarget {
		return []MetricsTarget{{PID: 1, Comm: "x\xff", Up: true, Recording: rec}, {PID: 2, Comm: "y"}}
	}, 5, "1.0"))
	if _, err := registry.Gather(); err != nil {
		t.Fatal(err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}
