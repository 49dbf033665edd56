package tracer

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// The governor's rhythm.
const (
	lookEvery       = 20 * time.Millisecond // while probes are in: a burst costs at most this before it is seen
	shortestLook    = 2 * time.Millisecond
	windowNS        = 25e6 // mean length of a window where probes must be out most of the time
	idleShare       = 0.05 // of one processor: what an idle target is credited with
	savingsNS       = 0.4e9
	boundMargin     = 0.75 // of the bound is spent on hits; the rest is for what hits do not show
	turnNS          = 80e6 // mean delay of going out and coming in: about a round of a poll loop
	mostDebtNS      = 20e6 // of probe time: more than that ends a window at once
	statisticsFirst = 30 * time.Millisecond
	statisticsEvery = 5 * time.Second
)

// governor holds the slowdown of the target to the bound. Every family has an account: the
// target's own processor time pays in, each hit takes out. A family whose account is empty
// goes out until there is enough for a window of random length.
type governor struct {
	cost     *cost
	bound    float64 // 0 = none: only the costs are watched
	accounts []*account
	done     chan struct{}
	ended    chan struct{}
	once     sync.Once
	mutex    sync.Mutex
	err      error
	last     spending
	lastAt   time.Time
}

// account is one family's share of the bound.
type account struct {
	family   family
	steady   bool // never goes out
	out      bool
	balance  float64   // nanoseconds of probe time
	demand   float64   // what the family takes while it is in, as a fraction of the target's own time
	burn     float64   // the same in nanoseconds of probe time for each of the clock
	share    float64   // of the target's own time
	windowNS float64   // how long the next window is to be
	turns    time.Time // when it goes out or in, once the account says so; zero before
}

// startGovernor begins to watch, and to govern if there is a bound. The probes are in.
func startGovernor(c *cost, families []family, o Options) *governor {
	g := &governor{cost: c, bound: o.MaxOverhead * boundMargin, done: make(chan struct{}), ended: make(chan struct{})}
	for _, f := range families {
		_, cycled := f.(cycled)
		g.accounts = append(g.accounts, &account{
			family: f, steady: !cycled, balance: g.bound * savingsNS, share: g.bound, windowNS: randomWindow(),
		})
	}
	go g.run()
	return g
}

// stop ends the governor: probes stay as they are. It may be called again, and on nil.
func (g *governor) stop() {
	if g == nil {
		return
	}
	g.once.Do(func() { close(g.done) })
	<-g.ended
}

// failed is what ended the governor early.
func (g *governor) failed() error {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.err
}

func (g *governor) run() {
	defer close(g.ended)
	if err := g.watch(); err != nil {
		g.mutex.Lock()
		g.err = err
		g.mutex.Unlock()
	}
}

// watch looks at the costs again and again.
func (g *governor) watch() error {
	statisticsAt, measuring := time.Now(), false
	for wait := shortestLook; ; wait = g.pause() {
		select {
		case <-g.done:
			return g.cost.endStatistics()
		case <-time.After(wait):
		}
		now := time.Now()
		switch {
		case !measuring && !now.Before(statisticsAt):
			measuring, statisticsAt = true, now.Add(statisticsFirst)
			if err := g.cost.beginStatistics(); err != nil {
				return err
			}
		case measuring && !now.Before(statisticsAt):
			measuring, statisticsAt = false, now.Add(statisticsEvery)
			if err := g.cost.endStatistics(); err != nil {
				return err
			}
		}
		if err := g.look(now); err != nil {
			return err
		}
	}
}

// pause is how long until the next look: shorter where an account will be empty before.
func (g *governor) pause() time.Duration {
	wait := float64(lookEvery)
	if g.bound == 0 {
		return 5 * lookEvery
	}
	for _, a := range g.accounts {
		if !a.steady && !a.out && a.burn > 0 && a.demand > a.share {
			wait = min(wait, max(0, a.balance)/a.burn)
		}
	}
	return max(shortestLook, time.Duration(wait))
}

// look takes in what was spent since the last look, and acts on it.
func (g *governor) look(now time.Time) error {
	spent, err := g.cost.look()
	if err != nil {
		return err
	}
	if g.lastAt.IsZero() {
		g.last, g.lastAt = spent, now
		g.last.byFamily = make([]float64, len(spent.byFamily)) // what attaching cost counts
	}
	clock := float64(now.Sub(g.lastAt))
	own := max(0, spent.ownNS()-g.last.ownNS())
	credit := max(own, idleShare*clock)
	for i, a := range g.accounts {
		took := spent.byFamily[i] - g.last.byFamily[i]
		a.observe(took, own, clock)
		a.balance = min(a.balance+a.share*credit-took, g.savings(own, clock)*a.share)
	}
	g.last, g.lastAt = spent, now
	if g.bound == 0 {
		return nil
	}
	g.divide()
	for _, a := range g.accounts {
		if err := a.act(now); err != nil {
			return err
		}
	}
	return nil
}

// savings is how much of the target's own time an account may save up for: a burst may take
// what was saved, and no more.
func (g *governor) savings(own, clock float64) float64 {
	if clock <= 0 {
		return savingsNS
	}
	return savingsNS * max(1, own/clock)
}

// observe updates what the family takes while it is in.
func (a *account) observe(took, own, clock float64) {
	const memory = 0.7
	if a.out || clock <= 0 {
		return
	}
	a.burn = memory*a.burn + (1-memory)*took/clock
	if own > 0 {
		a.demand = memory*a.demand + (1-memory)*took/own
	}
}

// leastShare of the bound is left for families that go out and in, however much the steady
// ones take: who sees a little can estimate.
const leastShare = 0.25

// divide shares out what the steady families leave of the bound: families that need little
// get what they need, the others an equal part of the rest, and what nobody needs is
// headroom for all.
func (g *governor) divide() {
	rest := g.bound
	var open []*account
	for _, a := range g.accounts {
		if a.steady {
			rest -= a.demand
		} else {
			open = append(open, a)
		}
	}
	rest = max(rest, leastShare*g.bound)
	slices.SortFunc(open, func(a, b *account) int { return cmp.Compare(a.demand, b.demand) })
	for i, a := range open {
		equal := rest / float64(len(open)-i)
		a.share = min(a.demand, equal)
		rest -= a.share
	}
	for _, a := range open {
		a.share += rest / float64(len(open))
	}
}

// act takes the family out a while after its account is empty, and in again a while after
// there is enough.
func (a *account) act(now time.Time) error {
	if a.steady || a.turns.IsZero() && !a.due() {
		return nil
	}
	if a.turns.IsZero() {
		a.turns = now.Add(time.Duration(rand.Int64N(2 * turnNS)))
	}
	if now.Before(a.turns) && (a.out || a.balance > -mostDebtNS) {
		return nil
	}
	a.turns = time.Time{}
	a.out = !a.out
	if a.out {
		a.windowNS = randomWindow()
		return a.family.pause()
	}
	return a.family.resume()
}

// due tells whether the account says that the family is to go out, or in again.
func (a *account) due() bool {
	if !a.out {
		return a.balance <= 0
	}
	// What a window cost is forgotten slowly: a burst that is over must not keep probes out.
	a.burn *= 0.99
	return a.balance >= a.burn*a.windowNS
}

// randomWindow is the length of a window, random so that windows do not fall into step with
// the target's own rounds.
func randomWindow() float64 { return windowNS * math.Max(0.3, rand.ExpFloat64()) }
