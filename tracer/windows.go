package tracer

import (
	"math"
	"sync"

	"memtrace/tracer/recording"
)

// windows makes totals of the whole trace from what was counted while the probes were in.
//
// What a target does is taken to keep step with its own processor time, which is known at all
// times: probes slow it down while they are in, and a target that sleeps does nothing. Each
// gap between two windows is filled at the rate, by own processor time, of the end of the
// window before and the beginning of the one after, because the governor ends a window just
// when much happens.
type windows struct {
	mutex   sync.Mutex
	in      bool
	at      figure // of the last call
	tail    []figure
	tailSum figure
	head    figure // of the window that is open
	before  figure // the tail of the window before the last gap
	gapNS   float64
	counted figure // in windows
	filled  figure // estimates of finished gaps
	squares float64
	window  figure  // the open window
	spread  spread  // how far finished windows are from each other
	probes  float64 // time of probes in windows, for the error of own times
	spent   float64 // time of probes at the last call
	told    figure  // the newest totals: they never shrink
	endNS   float64 // the target's own time when the trace ended; 0 while it runs
}

// figure is counts over a piece of own processor time.
type figure struct {
	ownNS  float64
	counts [totalsCount]float64
}

// edgeNS is how much own processor time at the edge of a window tells the rate of a gap.
const edgeNS = 40e6

// leastOwn is the least part of the processor time in a window that is taken to be the
// target's own.
const leastOwn = 0.1

// costError is the standard error of the calibrated cost of a hit, as a fraction: a few percent
// on a quiet machine, more where others compete for the processors and their caches, which a
// target's own figures do not tell apart.
const costError = 0.12

// open begins a window. The counts of at do not grow between close and open.
func (w *windows) open(at figure, probesNS float64) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.in {
		return
	}
	w.gapNS = max(0, at.ownNS-w.at.ownNS)
	w.before = w.tailSum
	w.at, w.in, w.spent = at, true, probesNS
	w.tail, w.tailSum, w.head, w.window = nil, figure{}, figure{}, figure{}
}

// slice takes in what was counted since the last call.
func (w *windows) slice(at figure, probesNS float64) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if !w.in {
		return
	}
	piece := at.minus(w.at)
	w.at = at
	// Where probes took nearly all of the time, the little that is left is not known.
	piece.ownNS = max(piece.ownNS, leastOwn*(piece.ownNS+probesNS-w.spent))
	w.probes += max(0, probesNS-w.spent)
	w.spent = probesNS
	w.counted, w.window = w.counted.plus(piece), w.window.plus(piece)
	if w.head.ownNS < edgeNS {
		w.head = w.head.plus(piece)
	}
	w.tail = append(w.tail, piece)
	w.tailSum = w.tailSum.plus(piece)
	for len(w.tail) > 1 && w.tailSum.ownNS-w.tail[0].ownNS >= edgeNS {
		w.tailSum = w.tailSum.minus(w.tail[0])
		w.tail = w.tail[1:]
	}
}

// close ends the window, after a last slice, and fills the gap before it.
func (w *windows) close() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if !w.in {
		return
	}
	w.in = false
	w.spread.add(w.window)
	gap, square := w.gap()
	w.filled = w.filled.plus(gap)
	w.squares += square
	w.gapNS = 0
}

// finish ends the trace.
func (w *windows) finish(ownNS float64) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.endNS = ownNS
}

// gap is what the gap before the current window holds, and the square of its error in calls.
func (w *windows) gap() (figure, float64) {
	around := w.before.plus(w.head)
	if w.gapNS == 0 || around.ownNS <= 0 {
		return figure{ownNS: w.gapNS}, 0
	}
	// How far the two sides are from their common rate tells how much it may be off.
	apart := w.before.counts[0] - around.counts[0]*w.before.ownNS/around.ownNS
	error := math.Sqrt2 * apart * w.gapNS / around.ownNS
	return around.times(w.gapNS / around.ownNS), error * error
}

// totals estimates the whole trace up to a moment, and the half width of the 95 % confidence
// interval of the calls, as a fraction.
func (w *windows) totals(nowOwnNS float64) (recording.AllocationTotals, float64) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.endNS > 0 {
		nowOwnNS = w.endNS
	}
	filled, squares := w.filled, w.squares
	last := figure{ownNS: max(0, nowOwnNS-w.at.ownNS)}
	if w.in {
		gap, square := w.gap()
		filled, squares = filled.plus(gap), squares+square
	} else if w.tailSum.ownNS > 0 {
		last = w.tailSum.times(last.ownNS / w.tailSum.ownNS)
		filled = filled.plus(last)
	}
	all := w.counted.plus(filled)
	for i := range all.counts {
		all.counts[i] = max(all.counts[i], w.told.counts[i])
	}
	w.told = all
	if all.counts[0] <= 0 {
		return all.totals(), 0
	}
	const width = 1.96
	systematic := 0.0
	if w.counted.ownNS > 0 {
		systematic = costError * w.probes / w.counted.ownNS * filled.counts[0]
	}
	between := w.spread.error() * filled.ownNS
	return all.totals(), width * math.Sqrt(squares+systematic*systematic+between*between) / all.counts[0]
}

// spread tells how much the calls for each of own processor time differ from window to
// window: what a window happened to see of the target's bursts. It is the standard error of
// a ratio of sums (Cochran, Sampling Techniques, section 6.4).
type spread struct{ windows, calls, own, callsCalls, callsOwn, ownOwn float64 }

func (s *spread) add(window figure) {
	calls, own := window.counts[0], window.ownNS
	s.windows++
	s.calls, s.own = s.calls+calls, s.own+own
	s.callsCalls, s.callsOwn, s.ownOwn = s.callsCalls+calls*calls, s.callsOwn+calls*own, s.ownOwn+own*own
}

// error is the standard error of the calls for a nanosecond of own time; 0 for less than two
// windows, which do not tell.
func (s *spread) error() float64 {
	if s.windows < 2 || s.own <= 0 {
		return 0
	}
	rate := s.calls / s.own
	residual := max(0, s.callsCalls-2*rate*s.callsOwn+rate*rate*s.ownOwn)
	return math.Sqrt(residual*s.windows/(s.windows-1)) / s.own
}

func (f figure) plus(g figure) figure {
	f.ownNS += g.ownNS
	for i := range f.counts {
		f.counts[i] += g.counts[i]
	}
	return f
}

func (f figure) minus(g figure) figure { return f.plus(g.times(-1)) }

func (f figure) times(factor float64) figure {
	f.ownNS *= factor
	for i := range f.counts {
		f.counts[i] *= factor
	}
	return f
}

// totalsCount is how many figures the totals are.
const totalsCount = 7

// figureOf takes the totals apart; the number of calls that make blocks comes first.
func figureOf(ownNS float64, t recording.AllocationTotals) figure {
	f := figure{ownNS: ownNS}
	for i, n := range []uint64{t.Allocs, t.AllocBytes, t.Frees, t.FreeBytes, t.Reallocs, t.ReallocBytes, t.Failed} {
		f.counts[i] = float64(n)
	}
	return f
}

func (f figure) totals() recording.AllocationTotals {
	n := func(i int) uint64 { return uint64(max(0, math.Round(f.counts[i]))) }
	return recording.AllocationTotals{
		Allocs: n(0), AllocBytes: n(1), Frees: n(2), FreeBytes: n(3), Reallocs: n(4), ReallocBytes: n(5), Failed: n(6),
	}
}
