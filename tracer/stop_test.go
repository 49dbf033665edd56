package tracer

import (
	"testing"
	"time"
)

// slowStop is a family whose probes are out only when another family's are.
type slowStop struct {
	family
	mine, other chan struct{}
}

func (s *slowStop) stop() error {
	close(s.mine)
	<-s.other
	return nil
}

func (s *slowStop) name() string { return "slow" }

// stopsAfter is the alloc family: it must find that the other one has stopped.
type stopsAfter struct {
	family
	others *slowStop
	early  bool
}

func (s *stopsAfter) name() string { return "alloc" }

func (s *stopsAfter) stop() error {
	select {
	case <-s.others.mine:
	default:
		s.early = true
	}
	return nil
}

// TestStopAtOnce: no family goes on counting while the probes of another are taken out.
func TestStopAtOnce(t *testing.T) {
	a, b := make(chan struct{}), make(chan struct{})
	first := &slowStop{mine: a, other: b}
	alloc := &stopsAfter{others: first}
	s := &Session{families: []family{alloc, first, &slowStop{mine: b, other: a}}}
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop() }()
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the families are stopped one after the other")
	}
	if alloc.early {
		t.Error("alloc stops while rounds still read its counters")
	}
}
