package heap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"memtrace/internal/workload"
)

// Eight threads allocate as hard as they can: every snapshot is either consistent or says
// that it is not, its parts add up, and none hangs. Once they are calm, it is exact.
func TestHardAllocatingTarget(t *testing.T) {
	p := workload.Start(t, workload.Build(t, "heapshape.c"))
	shaped(t, p, []string{"mixed 5000", "busy 8"})
	r, err := Open(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	consistent := 0
	for range 100 {
		h, err := r.Snapshot(context.Background(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		addsUp(t, h)
		if h.Consistent {
			consistent++
		} else if len(h.Notes) == 0 {
			t.Error("a snapshot tore and no note says so")
		}
	}
	t.Logf("%d of 100 snapshots were consistent", consistent)
	p.Say(t, "calm")
	p.Expect(t, "ok")
	compare(t, p)
}

// Frozen, a target that allocates hard is read consistently, and goes on afterwards.
func TestFreeze(t *testing.T) {
	p := workload.Start(t, workload.Build(t, "heapshape.c"))
	shaped(t, p, []string{"mixed 5000", "busy 8"})
	for range 5 {
		h := snapshot(t, p.PID(), Options{Freeze: true, Attempts: 100, FreezeLimit: time.Minute})
		if !h.Consistent {
			t.Errorf("frozen, and not consistent: %q", h.Notes)
		}
		if !h.Frozen || h.FrozenNS <= 0 {
			t.Errorf("frozen %v for %d ns", h.Frozen, h.FrozenNS)
		}
		addsUp(t, h)
	}
	p.Say(t, "calm") // only a process that runs can answer
	p.Expect(t, "ok")
	compare(t, p)
}

// A freeze that takes too long is given up, and the process runs again.
func TestFreezeIsBounded(t *testing.T) {
	p := workload.Start(t, workload.Build(t, "heapshape.c"))
	shaped(t, p, []string{"mixed 1000"})
	_, err := whileFrozen(context.Background(), p.PID(), 50*time.Millisecond, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that the time ran out", err)
	}
	compare(t, p)
}

// Killed while it holds a process, memtrace lets it go all the same.
func TestKilledWhileFrozen(t *testing.T) {
	if pid, err := strconv.Atoi(os.Getenv("MEMTRACE_TEST_FREEZE")); err == nil {
		whileFrozen(context.Background(), pid, time.Hour, func(ctx context.Context) error {
			fmt.Println("frozen")
			<-ctx.Done()
			return nil
		})
		return
	}
	p := workload.Start(t, workload.Build(t, "heapshape.c"))
	shaped(t, p, []string{"busy 3"})
	command := exec.Command(os.Args[0], "-test.run=^TestKilledWhileFrozen$")
	command.Env = append(os.Environ(), fmt.Sprintf("MEMTRACE_TEST_FREEZE=%d", p.PID()))
	holder := workload.StartCommand(t, command)
	holder.Expect(t, "frozen")
	stood := time.Now()
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.Say(t, "calm")
	p.Expect(t, "ok")
	t.Logf("it ran on after %v", time.Since(stood))
	compare(t, p)
}

// A signal that arrives while the process stands still is delivered afterwards.
func TestFreezeKeepsSignals(t *testing.T) {
	p := workload.Start(t, workload.Build(t, "heapshape.c"))
	shaped(t, p, nil)
	_, err := whileFrozen(context.Background(), p.PID(), time.Minute, func(context.Context) error {
		return syscall.Kill(p.PID(), syscall.SIGTERM)
	})
	if err != nil {
		t.Fatal(err)
	}
	state, err := p.Process.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if status := state.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
		t.Errorf("the process ended with %v, want SIGTERM", state)
	}
}

// A heap whose lists are broken is read to an end and reported as broken.
func TestCorruptHeap(t *testing.T) {
	program := workload.Build(t, "heapshape.c")
	for _, kind := range []string{"link", "size", "loop", "bins"} {
		t.Run(kind, func(t *testing.T) {
			p := workload.Start(t, program)
			shaped(t, p, []string{"scribble " + kind})
			r, err := Open(p.PID())
			if err != nil {
				t.Logf("refused: %v", err)
				if kind != "bins" {
					t.Errorf("the state itself is whole: %v", err)
				}
				return
			}
			defer r.Close()
			h, err := r.Snapshot(context.Background(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("notes: %q", h.Notes)
			if h.Consistent || len(h.Notes) == 0 {
				t.Errorf("consistent %v, notes %q: the damage went unnoticed", h.Consistent, h.Notes)
			}
			addsUp(t, h)
		})
	}
}

func TestTargetDies(t *testing.T) {
	program := workload.Build(t, "heapshape.c")
	p := workload.Start(t, program)
	shaped(t, p, []string{"threads 4 2000"})
	r, err := Open(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		_, err := r.Snapshot(context.Background(), Options{})
		if errors.Is(err, ErrGone) {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("error %v, want %v", err, ErrGone)
		}
	}
	p.Wait()
	if _, err := r.Snapshot(context.Background(), Options{Freeze: true}); !errors.Is(err, ErrGone) {
		t.Errorf("error %v, want %v", err, ErrGone)
	}
	if _, err := Open(p.PID()); err == nil {
		t.Error("a process that is no more was opened")
	}
}

func TestNotGlibc(t *testing.T) {
	source := filepath.Join(t.TempDir(), "bare.c")
	text := "void _start(void) { for (;;) __asm__ volatile(\"\"); }\nchar data[100000] = {1};\n"
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "bare")
	if out, err := exec.Command("gcc", "-O0", "-static", "-nostdlib", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	command := exec.Command(program)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		command.Process.Kill()
		command.Wait()
	}()
	if _, err := Open(command.Process.Pid); !errors.Is(err, ErrNotGlibc) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one line saying %v", err, ErrNotGlibc)
	}
}

// The target's process ids and mounts are not ours.
func TestOtherNamespaces(t *testing.T) {
	command := exec.Command(workload.Build(t, "heapshape.c"))
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC}
	p := workload.StartCommand(t, command)
	shaped(t, p, []string{"threads 4 1000", "mixed 1000"})
	compare(t, p)
	if h := snapshot(t, p.PID(), Options{Freeze: true}); !h.Consistent {
		t.Errorf("frozen, and not consistent: %q", h.Notes)
	}
}

// The library was replaced while the target runs with the old one.
func TestDeletedLibrary(t *testing.T) {
	root := inOwnRoot(t, fetchGlibc(t, "trixie", "libc6"))
	p := startUnder(t, root, buildForAll(t))
	shaped(t, p, []string{"threads 2 1000"})
	if err := os.RemoveAll(filepath.Join(root, "usr")); err != nil {
		t.Fatal(err)
	}
	h := compare(t, p)
	if h.Allocator.Version != "2.41" {
		t.Errorf("version %q of the deleted library, want 2.41", h.Allocator.Version)
	}
}

func TestSnapshotEndsWithItsContext(t *testing.T) {
	p := workload.Start(t, workload.Build(t, "heapshape.c"))
	shaped(t, p, []string{"mixed 1000"})
	r, err := Open(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Snapshot(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func TestArenas(t *testing.T) {
	p := workload.Start(t, workload.Build(t, "heapshape.c"))
	shaped(t, p, []string{"threads 5 100"})
	r, err := Open(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	arenas, err := r.Arenas(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	attached := uint64(0)
	for _, a := range arenas {
		attached += a.AttachedThreads
	}
	if len(arenas) != 6 || !arenas[0].Main || arenas[0].Address != r.Location().MainArena || attached != 6 {
		t.Errorf("arenas %s, want the main one and five of threads", fmt.Sprint(arenas))
	}
}
