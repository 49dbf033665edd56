package heap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// eventStop is PTRACE_EVENT_STOP: a stop that we asked for, not a signal on its way.
const eventStop = 128

// whileFrozen stops all threads of the process, runs work, and lets them go again,
// whatever happens. It returns how long they stood. The stop is ptrace's: should memtrace
// be killed meanwhile, the kernel lets the threads go. Work's context ends with the limit.
func whileFrozen(ctx context.Context, pid int, limit time.Duration, work func(context.Context) error) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type outcome struct {
		stood time.Duration
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		// ptrace belongs to one system thread. It is not handed back: when the goroutine
		// ends, so does the thread, and with it the last hold on the target.
		runtime.LockOSThread()
		began := time.Now()
		f := freeze{pid: pid, stopped: map[int]int{}}
		err := f.stopAll(ctx)
		if err == nil {
			err = work(ctx)
		}
		f.release()
		done <- outcome{time.Since(began), err}
	}()
	o := <-done
	if errors.Is(o.err, context.DeadlineExceeded) {
		return o.stood, fmt.Errorf("the process was resumed after %v, before its heap was read: allow more time, or read it without a stop: %w", limit, o.err)
	}
	return o.stood, o.err
}

// freeze is the set of threads that we hold: thread id to the signal that was on its way.
type freeze struct {
	pid     int
	stopped map[int]int
	seized  []int
}

// stopAll seizes and stops every thread, until a look at the list shows no new one.
func (f *freeze) stopAll(ctx context.Context) error {
	for {
		threads, err := f.newThreads()
		if err != nil || len(threads) == 0 {
			return err
		}
		for _, tid := range threads {
			switch err := unix.PtraceSeize(tid); {
			case errors.Is(err, unix.ESRCH):
				f.stopped[tid] = 0 // it ended
				continue
			case err != nil:
				return fmt.Errorf("stop thread %d of process %d (a debugger may hold it): %w", tid, f.pid, err)
			}
			f.seized = append(f.seized, tid)
			if err := unix.PtraceInterrupt(tid); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("stop thread %d: %w", tid, err)
			}
			if err := f.await(ctx, tid); err != nil {
				return err
			}
		}
	}
}

// newThreads lists the threads that are not held yet.
func (f *freeze) newThreads() ([]int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", f.pid))
	if err != nil {
		return nil, gone(err)
	}
	var threads []int
	for _, entry := range entries {
		tid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if _, held := f.stopped[tid]; !held {
			threads = append(threads, tid)
		}
	}
	return threads, nil
}

// await waits for a thread to stop, or to end.
func (f *freeze) await(ctx context.Context, tid int) error {
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		var status unix.WaitStatus
		got, err := unix.Wait4(tid, &status, unix.WALL|unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			f.stopped[tid] = 0 // it ended
			return nil
		case got == tid && status.Stopped():
			f.stopped[tid] = 0
			if int(status>>16) != eventStop {
				f.stopped[tid] = int(status.StopSignal())
			}
			return nil
		case got == tid:
			f.stopped[tid] = 0
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// release lets every thread go on, each with the signal that it was about to receive. One
// that never stopped is waited for: only a stopped thread can be let go.
func (f *freeze) release() {
	for _, tid := range f.seized {
		if _, held := f.stopped[tid]; !held {
			patience, cancel := context.WithTimeout(context.Background(), time.Second)
			f.await(patience, tid)
			cancel()
		}
		signal := f.stopped[tid]
		unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(tid), 0, uintptr(signal), 0, 0)
	}
}
