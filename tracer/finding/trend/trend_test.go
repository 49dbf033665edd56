package trend

import (
	"math"
	"math/rand"
	"testing"
	"time"
)

const mib = 1 << 20

// series makes n readings, a minute apart, from a function of the position in [0, 1).
func series(n int, value func(position float64) float64) []Point {
	points := make([]Point, n)
	for i := range points {
		points[i] = Point{time.Duration(i) * time.Minute, value(float64(i) / float64(n))}
	}
	return points
}

// readings spreads given values over a span.
func readings(span time.Duration, unit float64, values ...float64) []Point {
	points := make([]Point, len(values))
	for i, v := range values {
		points[i] = Point{span * time.Duration(i) / time.Duration(len(values)-1), v * unit}
	}
	return points
}

// TestKnownSeries judges series of known kind, each with two hundred different noises: a single
// wrong verdict is a false alarm or a missed leak. "Too short to say" is an honest answer to
// noise, so long as it stays the exception.
func TestKnownSeries(t *testing.T) {
	noise := func(r *rand.Rand, sigma float64) float64 { return r.NormFloat64() * sigma * mib }
	sawtooth := func(x float64, periods int) float64 { return math.Mod(x*float64(periods), 1) }
	tests := []struct {
		name  string
		n     int
		want  []Kind
		value func(r *rand.Rand) func(float64) float64
	}{
		{"noise", 120, []Kind{Plateau, TooShort}, func(r *rand.Rand) func(float64) float64 {
			return func(float64) float64 { return 500*mib + noise(r, 5) }
		}},
		{"loud noise", 120, []Kind{Plateau, TooShort}, func(r *rand.Rand) func(float64) float64 {
			return func(float64) float64 { return 500*mib + noise(r, 60) }
		}},
		{"sawtooth", 240, []Kind{Plateau, TooShort}, func(r *rand.Rand) func(float64) float64 {
			return func(x float64) float64 { return 300*mib + 200*mib*sawtooth(x, 30) + noise(r, 2) }
		}},
		{"leak", 120, []Kind{Leak}, func(r *rand.Rand) func(float64) float64 {
			return func(x float64) float64 { return 300*mib + 100*mib*x + noise(r, 3) }
		}},
		{"slow leak under big oscillation", 480, []Kind{Leak}, func(r *rand.Rand) func(float64) float64 {
			return func(x float64) float64 {
				return 500*mib + 60*mib*x + 200*mib*(1+math.Sin(x*2*math.Pi*40)) + noise(r, 2)
			}
		}},
		{"one step", 120, []Kind{Steps}, func(r *rand.Rand) func(float64) float64 {
			return func(x float64) float64 {
				if x > 0.6 {
					return 420*mib + noise(r, 2)
				}
				return 300*mib + noise(r, 2)
			}
		}},
		{"warm-up then flat", 200, []Kind{Plateau}, func(r *rand.Rand) func(float64) float64 {
			return func(x float64) float64 { return 400*mib*(1-math.Exp(-x*25)) + noise(r, 1) }
		}},
		{"still warming up", 120, []Kind{WarmUp}, func(r *rand.Rand) func(float64) float64 {
			return func(x float64) float64 { return 400*mib*(1-math.Exp(-x*3)) + noise(r, 0.3) }
		}},
		{"a leak after a warm-up", 200, []Kind{Leak}, func(r *rand.Rand) func(float64) float64 {
			return func(x float64) float64 { return 200*mib*(1-math.Exp(-x*40)) + 100*mib*x + noise(r, 1) }
		}},
		{"a falling floor", 120, []Kind{Plateau, Steps}, func(r *rand.Rand) func(float64) float64 {
			return func(x float64) float64 { return 500*mib - 100*mib*x + noise(r, 2) }
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			undecided := 0
			for seed := range int64(200) {
				verdict := Judge(series(test.n, test.value(rand.New(rand.NewSource(seed)))))
				if !contains(test.want, verdict.Kind) {
					t.Errorf("seed %d: %s, want %v: %+v", seed, verdict.Kind, test.want, verdict)
				}
				if verdict.Kind == TooShort {
					undecided++
				}
			}
			if undecided > 10 {
				t.Errorf("%d of 200 series left undecided", undecided)
			}
		})
	}
}

// TestIncidents judges the tables of real incidents.
func TestIncidents(t *testing.T) {
	pss := Judge(readings(8*time.Hour, 1024, 558232, 527151, 444790, 461963, 476763, 486619, 539143, 461629))
	if pss.Kind != TooShort && pss.Kind != Plateau {
		t.Errorf("eight noisy runs: %s; no leak may be claimed", pss.Kind)
	}
	before := series(27, func(x float64) float64 { return (1458 + 2*math.Sin(x*100)) * 1e6 })
	if v := Judge(before); v.Kind != Plateau {
		t.Errorf("1458 MB with a noise of 2: %s", v.Kind)
	}
	after := Judge(readings(205*time.Minute, 1e6, 610, 611, 611, 612, 612))
	if after.Kind != Plateau {
		t.Errorf("610 to 612 MB in 205 minutes: %s", after.Kind)
	}
	r := rand.New(rand.NewSource(1))
	quarters := []float64{2179, 2179, 2179, 2270}
	step := Judge(series(80, func(x float64) float64 {
		return (quarters[int(x*4)] + 100*r.Float64()*r.Float64()) * 1e6
	}))
	if step.Kind != Steps || math.Abs(step.Step-91e6) > 15e6 || step.StepAt < 59*time.Minute || step.StepAt > 66*time.Minute {
		t.Errorf("floors 2179 2179 2179 2270: %s, step of %.0f MB at %s", step.Kind, step.Step/1e6, step.StepAt)
	}
}

// TestSlopeCoversTheTruth checks the interval's promise: it holds the true slope in about
// 95 of 100 series.
func TestSlopeCoversTheTruth(t *testing.T) {
	const tries, truth = 400, 60 * mib
	covered := 0
	for seed := range int64(tries) {
		r := rand.New(rand.NewSource(seed))
		points := series(24, func(x float64) float64 { return 300*mib + truth*x*24/60 + r.NormFloat64()*10*mib })
		if _, low, high, _ := senSlope(points); low <= truth && truth <= high {
			covered++
		}
	}
	if covered < tries*90/100 || covered > tries*99/100 {
		t.Errorf("the 95 %% interval held the true slope in %d of %d series", covered, tries)
	}
}

// TestDegenerate makes sure that no series is too strange.
func TestDegenerate(t *testing.T) {
	if v := Judge(nil); v.Kind != TooShort {
		t.Errorf("no reading: %s", v.Kind)
	}
	if v := Judge(make([]Point, 100)); v.Kind != Plateau {
		t.Errorf("all at one time, all zero: %s", v.Kind)
	}
	if v := Judge(readings(time.Hour, mib, 1, 2, 3)); v.Kind != TooShort {
		t.Errorf("three readings: %s", v.Kind)
	}
}

func contains(kinds []Kind, kind Kind) bool {
	for _, k := range kinds {
		if k == kind {
			return true
		}
	}
	return false
}
