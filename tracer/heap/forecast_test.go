package heap

import (
	"fmt"
	"testing"

	"memtrace/internal/workload"
)

// The forecast is held against what malloc_trim(0) then takes off the target's resident
// memory, by the target's own reading of it.
func TestForecastMatchesTrim(t *testing.T) {
	program := workload.Build(t, "heapshape.c")
	for name, commands := range map[string][]string{
		"holes of half a page":     {"holes 40000 2000"},
		"holes of many pages":      {"holes 2000 50000"},
		"pins":                     {"pins 3000 20000"},
		"small pins":               {"pins 30000 900"},
		"large bins":               {"large 3000"},
		"fast bins that merge":     {"fast 300000 100", "pins 1000 9000"},
		"top":                      {"top 120000"},
		"large top":                {"untouched 1000", "top 30000000"},
		"untouched top":            {"untouched 30000000"},
		"after a trim":             {"pins 2000 9000", "trim"},
		"refilled after a trim":    {"pins 2000 9000", "trim", "mixed 5000"},
		"thread arenas":            {"threads 8 9000"},
		"arenas of exited threads": {"threads 8 9000", "end"},
		"only read":                {"reread 30000000"},
		"mixed":                    {"mixed 30000", "mmapped 10 300000"},
	} {
		t.Run(name, func(t *testing.T) {
			p := workload.Start(t, program)
			shaped(t, p, commands)
			forecastHolds(t, p)
		})
	}
}

func TestForecastOnOtherGlibcs(t *testing.T) {
	program := buildForAll(t)
	for release, packages := range map[string][]string{"bullseye": {"libc6", "libc6-dev"}, "trixie": {"libc6"}, "sid": {"libc6"}} {
		t.Run(release, func(t *testing.T) {
			p := startUnder(t, fetchGlibc(t, release, packages...), program)
			shaped(t, p, []string{"pins 2000 20000", "fast 100000 100", "threads 4 5000", "top 100000"})
			forecastHolds(t, p)
		})
	}
}

func forecastHolds(t *testing.T, p *workload.Process) {
	t.Helper()
	forecast := int64(snapshot(t, p.PID(), Options{}).TrimForecastBytes)
	p.Say(t, "trim")
	var returned, before, after int64
	line := p.Expect(t, "trimmed")
	if _, err := fmt.Sscan(line, &returned, &before, &after); err != nil {
		t.Fatalf("trimmed %q: %v", line, err)
	}
	got := before - after
	if allowed := got*3/100 + 256<<10; forecast < got-allowed || forecast > got+allowed {
		t.Errorf("forecast %d bytes, malloc_trim returned %d", forecast, got)
	}
	t.Logf("forecast %d, returned %d", forecast, got)
}
