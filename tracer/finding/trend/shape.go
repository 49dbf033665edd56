package trend

import (
	"math"
	"time"
)

// shape is the form that describes the floor best.
type shape int

const (
	constant shape = iota
	line
	staircase
)

// mostSteps bounds the staircase: more steps than that are a slope.
const mostSteps = 3

// leastLevel is the number of minima that make a level of a staircase.
const leastLevel = 2

// decisive is by how much a staircase must beat simpler forms: ten is "very strong"
// evidence on the usual scale (R. Kass and A. Raftery, JASA 90, 1995).
const decisive = 10

// sharpness is the least height of a step in deviations of its levels.
const sharpness = 5

// model is the winning form and, for a staircase, where its levels begin.
type model struct {
	shape  shape
	points []Point
	starts []int // the first index of each level; the first is 0
}

// fit compares a constant, a line and staircases of up to mostSteps steps.
func fit(points []Point) model {
	best := model{shape: constant, points: points, starts: []int{0}}
	if len(points) < 2*leastLevel {
		return best
	}
	least := criterion(points, residual(points, 0, len(points)), 1)
	if c := criterion(points, lineResidual(points), 2); c < least {
		best.shape, least = line, c
	}
	starts := []int{0}
	for steps := 1; steps <= mostSteps; steps++ {
		next, sum, found := refine(points, starts)
		if !found {
			break
		}
		starts = next
		// A step costs two parameters: its height and its place.
		if c := criterion(points, sum, 1+2*steps); c < least-decisive && sharp(points, starts) {
			best.shape, best.starts, least = staircase, starts, c
		}
	}
	return best
}

// sharp tells whether each step of a staircase rises clearly out of what its two levels
// scatter by.
func sharp(points []Point, starts []int) bool {
	for level := 1; level < len(starts); level++ {
		to := len(points)
		if level+1 < len(starts) {
			to = starts[level+1]
		}
		before, after := values(points[starts[level-1]:starts[level]]), values(points[starts[level]:to])
		scatter := math.Max(deviation(before), deviation(after))
		if math.Abs(median(after)-median(before)) < sharpness*scatter {
			return false
		}
	}
	return true
}

// criterion is the Bayesian information criterion of a fit. A noise of a twentieth of the
// tolerance is taken for granted, so that a perfect series does not divide by zero.
func criterion(points []Point, residual float64, parameters int) float64 {
	n := float64(len(points))
	grain := tolerance(points) / 20
	return n*math.Log(residual/n+grain*grain) + float64(parameters)*math.Log(n)
}

// residual is the sum of squares around the mean of points[from:to].
func residual(points []Point, from, to int) float64 {
	sum, squares := 0.0, 0.0
	mean := 0.0
	for _, p := range points[from:to] {
		sum += p.Bytes
	}
	mean = sum / float64(to-from)
	for _, p := range points[from:to] {
		squares += (p.Bytes - mean) * (p.Bytes - mean)
	}
	return squares
}

// lineResidual is the sum of squares around the least-squares line.
func lineResidual(points []Point) float64 {
	n := float64(len(points))
	var st, sv float64
	for _, p := range points {
		st += p.At.Hours()
		sv += p.Bytes
	}
	mt, mv := st/n, sv/n
	var stt, stv, svv float64
	for _, p := range points {
		t, v := p.At.Hours()-mt, p.Bytes-mv
		stt += t * t
		stv += t * v
		svv += v * v
	}
	if stt == 0 {
		return svv
	}
	return math.Max(0, svv-stv*stv/stt)
}

// refine adds the one step that lowers the residual most.
func refine(points []Point, starts []int) (refined []int, least float64, found bool) {
	least = math.Inf(1)
	for level, from := range starts {
		to := len(points)
		if level+1 < len(starts) {
			to = starts[level+1]
		}
		rest := 0.0
		for other, start := range starts {
			if other == level {
				continue
			}
			end := len(points)
			if other+1 < len(starts) {
				end = starts[other+1]
			}
			rest += residual(points, start, end)
		}
		for cut := from + leastLevel; cut <= to-leastLevel; cut++ {
			sum := rest + residual(points, from, cut) + residual(points, cut, to)
			if sum < least {
				least, found = sum, true
				refined = append(append(append([]int{}, starts[:level+1]...), cut), starts[level+1:]...)
			}
		}
	}
	return refined, least, found
}

// largestStep is the largest change between two levels of a staircase, 0 for other forms.
func (m model) largestStep() (bytes float64, at time.Duration) {
	if m.shape != staircase {
		return 0, 0
	}
	levels := make([]float64, len(m.starts))
	for i, from := range m.starts {
		to := len(m.points)
		if i+1 < len(m.starts) {
			to = m.starts[i+1]
		}
		levels[i] = median(values(m.points[from:to]))
	}
	for i := 1; i < len(levels); i++ {
		if change := levels[i] - levels[i-1]; math.Abs(change) > math.Abs(bytes) {
			bytes, at = change, m.points[m.starts[i]].At
		}
	}
	return bytes, at
}
