package tracer

import (
	"context"
	"errors"
	"sync"
	"time"

	"memtrace/tracer/recording"
	"memtrace/tracer/target"
)

// Follower is a trace without an end that publishes what it has found every so often, for
// metrics and pages. Reading what is published never waits on the target.
type Follower struct {
	session *Session
	cancel  context.CancelFunc
	done    chan struct{} // closed when the trace has ended
	err     error         // why, set before done is closed

	mutex     sync.Mutex
	published []published // the last ones, oldest first
}

// published is a snapshot and when it was taken.
type published struct {
	at  time.Time
	rec *recording.Recording
}

// keepPublished is how far back a snapshot is kept, for the picture of the last minute.
const keepPublished = 70 * time.Second

// Follow opens a target, puts the probes in and takes a snapshot every so often until Close
// or the end of the target.
func Follow(ctx context.Context, options Options, every time.Duration) (*Follower, error) {
	session, err := Open(ctx, options)
	if err != nil {
		return nil, err
	}
	if err := session.Attach(ctx); err != nil {
		return nil, errors.Join(err, session.Close())
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &Follower{session: session, cancel: cancel, done: make(chan struct{})}
	if err := f.publish(running); err != nil {
		cancel()
		return nil, errors.Join(err, session.Close())
	}
	go f.run(running, every)
	return f, nil
}

// run takes the snapshots.
func (f *Follower) run(ctx context.Context, every time.Duration) {
	defer close(f.done)
	last := time.Now()
	f.err = f.session.watch(ctx, func() error {
		if time.Since(last) < every-tickEvery/2 {
			return nil
		}
		last = time.Now()
		return f.publish(ctx)
	})
}

// publish takes one snapshot and forgets the oldest.
func (f *Follower) publish(ctx context.Context) error {
	now := time.Now() // the counters are read first, the rest does not matter to the millisecond
	rec, err := f.session.Record(ctx)
	if err != nil {
		return err
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.published = append(f.published, published{now, rec})
	for len(f.published) > 2 && now.Sub(f.published[1].at) > keepPublished {
		f.published = f.published[1:]
	}
	return nil
}

// Latest returns the newest snapshot and when it was taken.
func (f *Follower) Latest() (*recording.Recording, time.Time) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	last := f.published[len(f.published)-1]
	return last.rec, last.at
}

// LastMinute returns what happened in the last minute, as far as the figures can be told
// apart by time.
func (f *Follower) LastMinute() *recording.Recording {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	last := f.published[len(f.published)-1]
	for i := len(f.published) - 2; i >= 0; i-- {
		if last.at.Sub(f.published[i].at) >= time.Minute || i == 0 {
			return last.rec.Since(f.published[i].rec)
		}
	}
	return last.rec
}

// Done is closed when the target has ended or the trace has failed.
func (f *Follower) Done() <-chan struct{} { return f.done }

// Err tells why the trace ended, nil when the target did; valid once Done is closed.
func (f *Follower) Err() error { return f.err }

// Close ends the trace and takes the probes out.
func (f *Follower) Close() error {
	f.cancel()
	<-f.done
	return f.session.Close()
}

// CanTrace tells why a process cannot be traced, as a *target.Refusal; nil when it can.
func CanTrace(ctx context.Context, pid int) error {
	t, err := target.Open(ctx, pid)
	if err != nil {
		return err
	}
	return t.Close()
}
