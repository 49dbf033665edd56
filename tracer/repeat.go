package tracer

import (
	"sync"
	"time"
)

// repeats calls functions again and again beside a trace, until it is stopped.
type repeats struct {
	done    chan struct{} // closed to end the goroutines; nil = none runs
	running sync.WaitGroup
	mutex   sync.Mutex
	failed  error
}

// start calls work every so often, until stop or its first error.
func (r *repeats) start(every time.Duration, work func() error) {
	if r.done == nil {
		r.done = make(chan struct{})
	}
	done := r.done
	r.running.Go(func() {
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticks.C:
				if err := work(); err != nil {
					r.fail(err)
					return
				}
			}
		}
	})
}

func (r *repeats) fail(err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.failed == nil {
		r.failed = err
	}
}

// failure is the first error of a function, which ended its repetition.
func (r *repeats) failure() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.failed
}

// active tells whether anything is repeated.
func (r *repeats) active() bool { return r.done != nil }

// stop ends all repetitions and waits for them; it may be called again.
func (r *repeats) stop() {
	if r.done != nil {
		close(r.done)
		r.done = nil
	}
	r.running.Wait()
}
