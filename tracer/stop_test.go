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

// TestStopAtOnce: no family goes on counting while the probes of another are taken out.
func TestStopAtOnce(t *testing.T) {
	a, b := make(chan struct{}), make(chan struct{})
	s := &Session{families: []family{&slowStop{mine: a, other: b}, &slowStop{mine: b, other: a}}}
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
}
