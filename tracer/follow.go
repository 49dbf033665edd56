package tracer

import (
	"context"
	"errors"
	"time"

	"memtrace/tracer/target"
)

// Follower is a trace without an end that publishes what it finds.
type Follower struct {
	*Publisher
	session *Session
	cancel  context.CancelFunc
	done    chan struct{} // closed when the trace has ended
	err     error         // why, set before done is closed
}

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
	publisher, err := session.Publish(ctx, every)
	if err != nil {
		return nil, errors.Join(err, session.Close())
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &Follower{Publisher: publisher, session: session, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		f.err = session.watch(running)
	}()
	return f, nil
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
