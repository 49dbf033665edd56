package watch

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"memtrace/tracer/recording"
)

// fake is a session that counts how many are open.
type fake struct {
	open *atomic.Int64
	done chan struct{}
}

func (f *fake) Latest() (*recording.Recording, time.Time) { return &recording.Recording{}, time.Now() }
func (f *fake) LastMinute() *recording.Recording          { return &recording.Recording{} }
func (f *fake) Done() <-chan struct{}                     { return f.done }
func (f *fake) Close() error                              { f.open.Add(-1); return nil }

// sleeper starts a process that waits, and ends it with the test.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	command := exec.Command("sleep", "1000")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { command.Process.Kill(); command.Wait() })
	return command
}

// TestProcessesComeAndGo traces what is alive, drops what ends, and closes all at the end.
func TestProcessesComeAndGo(t *testing.T) {
	var open atomic.Int64
	first, second, third := sleeper(t), sleeper(t), sleeper(t)
	pids := []int{first.Process.Pid, second.Process.Pid, third.Process.Pid, 1 << 22}
	w := New(Options{
		Choose: func() ([]int, error) { return pids, nil },
		Start: func(_ context.Context, pid int) (Session, error) {
			if pid == second.Process.Pid {
				return nil, errors.New("no allocator")
			}
			open.Add(1)
			return &fake{&open, make(chan struct{})}, nil
		},
		Every: time.Hour, Most: 10,
	})
	if err := w.look(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.Targets()); n != 3 || open.Load() != 2 {
		t.Fatalf("%d targets, %d open", n, open.Load())
	}
	first.Process.Kill()
	first.Wait()
	if err := w.look(context.Background()); err != nil {
		t.Fatal(err)
	}
	targets := w.Targets()
	if len(targets) != 2 || open.Load() != 1 || targets[0].Err == nil && targets[1].Err == nil {
		t.Fatalf("%+v, %d open", targets, open.Load())
	}
	w.closeAll()
	if open.Load() != 0 || len(w.Targets()) != 0 {
		t.Errorf("%d sessions left open", open.Load())
	}
}

// TestMost bounds the traces.
func TestMost(t *testing.T) {
	var open atomic.Int64
	var pids []int
	for range 5 {
		pids = append(pids, sleeper(t).Process.Pid)
	}
	w := New(Options{
		Choose: func() ([]int, error) { return pids, nil },
		Start: func(context.Context, int) (Session, error) {
			open.Add(1)
			return &fake{&open, make(chan struct{})}, nil
		},
		Every: time.Hour, Most: 2,
	})
	if err := w.look(context.Background()); err != nil {
		t.Fatal(err)
	}
	if open.Load() != 2 || w.Waiting() != 3 {
		t.Errorf("%d open, %d waiting", open.Load(), w.Waiting())
	}
}

func TestNamed(t *testing.T) {
	command := sleeper(t)
	pids, err := Named("sleep")()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, pid := range pids {
		found = found || pid == command.Process.Pid
		if pid == os.Getpid() {
			t.Error("this test is no sleep")
		}
	}
	if !found {
		t.Errorf("process %d is not among %v", command.Process.Pid, pids)
	}
}
