package calibrate

import (
	"syscall"
	"testing"

	"memtrace/tracer/probe"
)

// TestMeasure: a hit takes more than nothing and less than a single step's multiple, on any
// machine that runs this test.
func TestMeasure(t *testing.T) {
	features, err := probe.DetectFeatures()
	if err != nil {
		t.Fatal(err)
	}
	costs, err := Measure(features)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", costs)
	within := func(what string, ns, from, to float64) {
		if ns < from || ns > to {
			t.Errorf("%s: %.0f ns, want between %.0f and %.0f", what, ns, from, to)
		}
	}
	within("entry", costs.EntryNS, 10, 100_000)
	if features.Session {
		within("session", costs.SessionNS, 10, 100_000)
	}
	within("statistics", costs.StatisticsNS, 0, 10_000)
}

// TestBurst: the program passes the probe as often as it says, and ends when it is told.
func TestBurst(t *testing.T) {
	p, err := startPacer()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := p.burst(); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
	if err := p.process.Signal(syscall.Signal(0)); err == nil {
		t.Error("the program still runs")
	}
}
