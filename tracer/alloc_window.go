package tracer

import (
	"context"
	"errors"
	"fmt"

	"memtrace/tracer/probe"
	"memtrace/tracer/recording"
)

// attach puts the probes in.
func (f *allocFamily) attach(context.Context) error {
	f.coverage.begin(monotonicNS())
	if err := f.kernel.markGap(true); err != nil {
		return err
	}
	return f.resume()
}

// resume puts the probes in, all or none, and opens a window: until then the programs count
// nothing, because some are in and some are not yet.
func (f *allocFamily) resume() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.links) > 0 {
		return nil
	}
	for _, group := range f.groups {
		links, err := f.attachGroup(group)
		if err != nil {
			return errors.Join(err, f.detach())
		}
		f.links = append(f.links, links)
	}
	at, probesNS, err := f.reading()
	if err != nil {
		return err
	}
	f.windows.open(at, probesNS)
	f.coverage.resume(monotonicNS())
	return f.kernel.markGap(false)
}

func (f *allocFamily) attachGroup(g allocGroup) (*probe.Links, error) {
	file, err := f.tracee.target.OpenMapped(g.allocator.Mapping)
	if err != nil {
		return nil, fmt.Errorf("open the allocator: %w", err)
	}
	defer file.Close()
	return f.kernel.features.Attach(g.program, file, g.sites, f.tracee.pid, g.kind)
}

// pause closes the window and takes the probes out. Blocks that are followed are forgotten:
// their release may go unseen.
func (f *allocFamily) pause() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.links) == 0 {
		return nil
	}
	if err := f.kernel.markGap(true); err != nil {
		return err
	}
	f.coverage.pause(monotonicNS())
	at, probesNS, err := f.reading()
	if err != nil {
		return err
	}
	f.windows.slice(at, probesNS)
	f.windows.close()
	return errors.Join(f.detach(), f.forgetBlocks())
}

// slice takes in what was counted in the open window so far.
func (f *allocFamily) slice() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.links) == 0 {
		return nil
	}
	at, probesNS, err := f.reading()
	if err != nil {
		return err
	}
	f.windows.slice(at, probesNS)
	return nil
}

// reading is what was counted so far, and the target's own processor time and the probes'.
func (f *allocFamily) reading() (figure, float64, error) {
	counted, err := f.counted()
	if err != nil {
		return figure{}, 0, err
	}
	spent, err := f.tracee.cost.look()
	return figureOf(spent.ownNS(), counted), spent.probesNS, err
}

// estimate is what was allocated in the whole trace, and the half width of the 95 %
// confidence interval as a fraction.
func (f *allocFamily) estimate() (recording.AllocationTotals, float64, error) {
	spent, err := f.tracee.cost.look()
	if err != nil {
		return recording.AllocationTotals{}, 0, err
	}
	totals, relative := f.windows.totals(spent.ownNS())
	return totals, relative, nil
}

// share is the part of the trace during which the probes were in.
func (f *allocFamily) share() float64 { return f.coverage.share(monotonicNS()) }

// stop takes the probes out for good: what was counted stands still from the beginning of
// the call on.
func (f *allocFamily) stop() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.coverage.stop(monotonicNS())
	if err := f.kernel.markGap(true); err != nil {
		return err
	}
	at, probesNS, err := f.reading()
	if err != nil {
		return err
	}
	if len(f.links) > 0 {
		f.windows.slice(at, probesNS)
	}
	f.windows.finish(at.ownNS)
	return f.detach()
}

// detach takes the probes out; the mutex is held.
func (f *allocFamily) detach() error {
	err := closeAll(f.links)
	f.links = nil
	return err
}
