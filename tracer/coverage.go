package tracer

import "sync"

// coverage adds up how long a family's probes were in. Times are of monotonicNS.
type coverage struct {
	mutex   sync.Mutex
	start   int64
	inSince int64 // 0 = the probes are out
	inNS    int64 // of finished windows
	paused  bool  // at least once
}

func (c *coverage) begin(now int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.start = now
}

func (c *coverage) resume(now int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.inSince == 0 {
		c.inSince = now
	}
}

func (c *coverage) pause(now int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.inSince != 0 {
		c.inNS += now - c.inSince
		c.inSince = 0
		c.paused = true
	}
}

// stop ends the last window.
func (c *coverage) stop(now int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.inSince != 0 {
		c.inNS += now - c.inSince
		c.inSince = 0
	}
}

// covered returns for how long the probes have been in until now, and whether they were
// out in between.
func (c *coverage) covered(now int64) (ns int64, gaps bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	ns = c.inNS
	if c.inSince != 0 {
		ns += now - c.inSince
	}
	return ns, c.paused
}

// share is covered as a part of the time since begin; 1 when there were no gaps.
func (c *coverage) share(now int64) float64 {
	ns, gaps := c.covered(now)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !gaps || now <= c.start {
		return 1
	}
	return float64(ns) / float64(now-c.start)
}
