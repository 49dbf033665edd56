package tracer

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSpread: the error that is told of windows is how far their rate really is from that of
// the target, which bursts: a hundred calls in each of some milliseconds, drawn at random.
func TestSpread(t *testing.T) {
	const trials, windows, truth = 2000, 30, 50.0 / 1e6
	random := rand.New(rand.NewPCG(1, 2))
	covered := 0
	for range trials {
		var s spread
		for range windows {
			own := 1e6 * (1 + 9*random.Float64())
			calls := 0.0
			if random.Float64() < 0.5 {
				calls = own * 2 * truth
			}
			s.add(figure{ownNS: own, counts: [totalsCount]float64{calls}})
		}
		if math.Abs(s.calls/s.own-truth) <= 1.96*s.error() {
			covered++
		}
	}
	if share := float64(covered) / trials; share < 0.90 || share > 0.98 {
		t.Errorf("the interval held the truth in %.3f of the trials, want about 0.95", share)
	}
	var one spread
	one.add(figure{ownNS: 5, counts: [totalsCount]float64{3}})
	if one.error() != 0 || (&spread{}).error() != 0 {
		t.Error("one window tells an error")
	}
}
