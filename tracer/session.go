// Package tracer runs a tracing session: it opens the target, loads and attaches the
// families of probes, watches until the trace ends, and hands over a recording.
package tracer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"memtrace/symbolize"
	"memtrace/tracer/calibrate"
	"memtrace/tracer/target"
)

// Session is one trace of one process: Open, Attach, Wait, Record, Close.
type Session struct {
	options  Options
	tracee   *tracee
	kernel   *kernel
	names    *names
	families []family
	exit     *exitWatch
	attachNS int64 // how long attaching took
	endedNS  int64 // when the trace ended, 0 while it runs
	exited   bool
	stopped  bool
	stopErr  error // of the end: Record tells it
	cost     cost
	governor *governor
	// calibrated delivers what a hit costs here, once.
	calibrated chan calibrate.Costs
	publisher  *Publisher // nil: nothing is published while the trace runs
}

// tickEvery is how often the course of the trace gets a point, and names and mappings are
// looked at again.
const tickEvery = time.Second

// Open finds out what the process is and loads the probes; nothing is attached yet. What
// cannot be traced is refused with a *target.Refusal.
func Open(ctx context.Context, options Options) (_ *Session, err error) {
	s := &Session{options: options.withDefaults()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := refuseNested(); err != nil {
		return nil, err
	}
	s.tracee = &tracee{pid: options.PID, options: s.options, cost: &s.cost}
	if s.tracee.target, err = target.Open(ctx, options.PID); err != nil {
		return nil, err
	}
	s.tracee.buildID = s.tracee.target.BuildID()
	if s.exit, err = watchExit(options.PID); err != nil {
		return nil, err
	}
	if s.tracee.symbols, err = symbolize.New(options.PID); err != nil {
		return nil, fmt.Errorf("read the target's mappings: %w", err)
	}
	if s.kernel, err = openKernel(capacityFor(s.tracee.target.Threads), options.PID, s.tracee.symbols); err != nil {
		return nil, err
	}
	s.names = newNames(s.kernel, s.tracee)
	s.calibrate()
	for _, f := range families(s.options) {
		s.families = append(s.families, f)
		if err := f.load(ctx, s.kernel, s.tracee); err != nil {
			return nil, err
		}
		s.cost.add(f, s.kernel.takePrograms())
	}
	return s, nil
}

// calibrate finds out what a hit costs here, while the probes are loaded.
func (s *Session) calibrate() {
	features := s.kernel.features
	s.calibrated = make(chan calibrate.Costs, 1)
	go func() {
		costs, err := calibrate.Measure(features)
		if err != nil {
			costs = calibrate.Fallback // a bound by rough costs is better than no trace
		}
		s.calibrated <- costs
	}()
}

// Attach puts all probes in. The trace begins.
func (s *Session) Attach(ctx context.Context) error {
	s.cost.begin(s.tracee.pid, <-s.calibrated)
	s.tracee.startedNS, s.tracee.started = monotonicNS(), time.Now()
	for _, f := range s.families {
		if err := f.attach(ctx); err != nil {
			return fmt.Errorf("attach the %s probes: %w", f.name(), err)
		}
	}
	s.attachNS = monotonicNS() - s.tracee.startedNS
	s.governor = startGovernor(&s.cost, s.families, s.options)
	return nil
}

// Wait returns when the trace has ended: the context is done, the duration has passed, or
// the target has exited. None of these is an error.
func (s *Session) Wait(ctx context.Context) error {
	if s.options.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.options.Duration)
		defer cancel()
	}
	return s.watch(ctx)
}

// watch ticks until the trace has ended.
func (s *Session) watch(ctx context.Context) error {
	ticks := time.NewTicker(tickEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			s.end(false)
			return nil
		case <-s.exit.ended:
			s.end(true)
			return nil
		case <-ticks.C:
			replaced, err := s.tick()
			if err != nil || replaced {
				s.end(replaced)
				return err
			}
			if err := s.publishWhenDue(ctx); err != nil && ctx.Err() == nil {
				s.end(false)
				return err
			}
		}
	}
}

// end notes when the trace ended, and takes in what was mapped last.
func (s *Session) end(exited bool) {
	s.governor.stop()
	s.endedNS, s.exited = monotonicNS(), exited
	s.stopErr = s.stop()
	// Without the newest mappings some frames lack their names; the trace stands.
	_, _ = s.refreshMappings()
}

// tick looks at what changes while the trace runs. It tells whether the target has become
// another program, which ends the trace.
func (s *Session) tick() (replaced bool, err error) {
	at := monotonicNS() - s.tracee.startedNS
	for _, f := range s.families {
		if f, ok := f.(ticker); ok {
			if err := f.tick(at); err != nil {
				return false, err
			}
		}
	}
	if replaced, err = s.refreshMappings(); err != nil || replaced {
		return replaced, err
	}
	if err := s.governor.failed(); err != nil {
		return false, err
	}
	return false, s.names.refresh()
}

// refreshMappings reads what the target has mapped by now, for names and for unwinding. When
// it has become another program meanwhile, its stacks keep the names of the old one.
func (s *Session) refreshMappings() (replaced bool, err error) {
	before := s.tracee.symbols.Snapshot()
	if err := s.tracee.symbols.Refresh(); err != nil && !errors.Is(err, symbolize.ErrExited) {
		return false, err
	}
	if replaced, err = s.kernel.executed(); err != nil || replaced {
		s.names.freeze(before)
		return replaced, err
	}
	return false, s.kernel.unwind.Update(firstSpace, s.tracee.symbols)
}

// stop takes out the probes of the families that must stand still while they are read, of
// all at once: taking some out can last a second on a busy machine, which the figures of the
// others must not cover. A round that ends after alloc has stopped is known to be incomplete.
func (s *Session) stop() error {
	if s.stopped {
		return nil
	}
	s.stopped = true
	errs := make([]error, len(s.families))
	var stopping sync.WaitGroup
	for i, f := range s.families {
		if f, ok := f.(freezer); ok {
			stopping.Go(func() { errs[i] = f.stop() })
		}
	}
	stopping.Wait()
	return errors.Join(errs...)
}

// Close takes all probes out and lets go of the target. It may be called at any time.
func (s *Session) Close() error {
	var errs []error
	s.governor.stop()
	errs = append(errs, s.cost.close())
	for _, f := range slices.Backward(s.families) {
		errs = append(errs, f.close())
	}
	s.families = nil
	if s.kernel != nil {
		errs = append(errs, s.kernel.close())
		s.kernel = nil
	}
	if s.exit != nil {
		errs = append(errs, s.exit.close())
		s.exit = nil
	}
	if s.tracee != nil && s.tracee.symbols != nil {
		errs = append(errs, s.tracee.symbols.Close())
		s.tracee.symbols = nil
	}
	if s.tracee != nil && s.tracee.target != nil {
		errs = append(errs, s.tracee.target.Close())
		s.tracee.target = nil
	}
	return errors.Join(errs...)
}
