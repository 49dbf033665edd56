package tracer

import (
	"context"
	"sync"
	"time"

	"memtrace/tracer/recording"
)

// Publisher holds what a running trace has found so far, renewed every so often, for metrics
// and pages. Reading it never waits on the target.
type Publisher struct {
	every time.Duration
	due   time.Time

	mutex     sync.Mutex
	published []published // the last ones, oldest first; never empty
}

// published is a snapshot and when it was taken.
type published struct {
	at  time.Time
	rec *recording.Recording
}

// keepPublished is how far back a snapshot is kept, for the picture of the last minute.
const keepPublished = 70 * time.Second

// Publish takes a snapshot of an attached session at once, and makes Wait take another every
// so often.
func (s *Session) Publish(ctx context.Context, every time.Duration) (*Publisher, error) {
	p := &Publisher{every: every}
	if err := p.take(ctx, s); err != nil {
		return nil, err
	}
	s.publisher = p
	return p, nil
}

// publishWhenDue takes the next snapshot when it is time.
func (s *Session) publishWhenDue(ctx context.Context) error {
	if s.publisher == nil || time.Now().Before(s.publisher.due) {
		return nil
	}
	return s.publisher.take(ctx, s)
}

// take takes one snapshot and forgets the oldest.
func (p *Publisher) take(ctx context.Context, s *Session) error {
	// Ticks are a second apart: half of one keeps a late tick from doubling the wait.
	p.due = time.Now().Add(p.every - tickEvery/2)
	rec, err := s.Record(ctx)
	if err != nil {
		return err
	}
	at := rec.Session.Started.Add(rec.Session.Duration())
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.published = append(p.published, published{at, rec})
	for len(p.published) > 2 && at.Sub(p.published[1].at) > keepPublished {
		p.published = p.published[1:]
	}
	return nil
}

// Latest returns the newest snapshot and when it was taken.
func (p *Publisher) Latest() (*recording.Recording, time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	last := p.published[len(p.published)-1]
	return last.rec, last.at
}

// LastMinute returns what happened in the last minute, as far as the figures can be told
// apart by time.
func (p *Publisher) LastMinute() *recording.Recording {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	last := p.published[len(p.published)-1]
	for i := len(p.published) - 2; i >= 0; i-- {
		if last.at.Sub(p.published[i].at) >= time.Minute || i == 0 {
			return last.rec.Since(p.published[i].rec)
		}
	}
	return last.rec
}
