package probe_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"memtrace/internal/workload"
	"memtrace/tracer/probe"
	"memtrace/tracer/target"
)

// callSize is the size that the workload calls.c asks for and nobody else.
const callSize = 4242

// firstArgument is where the kernel keeps the first argument in the registers it hands over.
func firstArgument(t testing.TB) int16 {
	t.Helper()
	switch runtime.GOARCH {
	case "amd64":
		return 112 // pt_regs.di
	case "arm64":
		return 0 // user_pt_regs.regs[0]
	}
	t.Fatalf("no register layout for %s", runtime.GOARCH)
	return 0
}

// counter is a program that counts its runs with the workload's size by cookie, and returns
// a constant.
type counter struct {
	program *ebpf.Program
	counts  *ebpf.Map
}

func newCounter(t testing.TB, attach ebpf.AttachType, everySize bool, result int32) counter {
	t.Helper()
	counts, err := ebpf.NewMap(&ebpf.MapSpec{Name: "counts", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 16})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { counts.Close() })
	code := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}
	if !everySize {
		code = append(code, asm.LoadMem(asm.R2, asm.R1, firstArgument(t), asm.DWord), asm.JNE.Imm(asm.R2, callSize, "out"))
	}
	code = append(code,
		asm.FnGetAttachCookie.Call(),
		asm.StoreMem(asm.RFP, -4, asm.R0, asm.Word),
		asm.LoadMapPtr(asm.R1, counts.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, result).WithSymbol("out"),
		asm.Return(),
	)
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "count", Type: ebpf.Kprobe, AttachType: attach, License: "GPL", Instructions: code})
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	t.Cleanup(func() { program.Close() })
	return counter{program, counts}
}

// of returns the count of a cookie.
func (c counter) of(t testing.TB, cookie uint32) uint64 {
	t.Helper()
	var count uint64
	if err := c.counts.Lookup(cookie, &count); err != nil {
		t.Fatal(err)
	}
	return count
}

// features asks the kernel once more for each test, as programs do.
func features(t testing.TB) probe.Features {
	t.Helper()
	f, err := probe.DetectFeatures()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// startCalls runs the workload and opens it as a target.
func startCalls(t testing.TB) (*workload.Process, *target.Target, *os.File) {
	t.Helper()
	process := workload.Start(t, workload.Build(t, "calls.c"))
	process.Expect(t, "ready")
	opened, err := target.Open(t.Context(), process.PID())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	file, err := opened.OpenMapped(opened.Allocator.Mapping)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return process, opened, file
}

// site is where the probe of an entry goes.
func site(t testing.TB, opened *target.Target, name string, cookie uint64) probe.Site {
	t.Helper()
	entry, ok := opened.Allocator.Find(name)
	if !ok {
		t.Fatalf("no entry %s", name)
	}
	return entry.Site(cookie)
}

// run makes the workload call and waits for it.
func run(t testing.TB, process *workload.Process, calls, threads int) {
	t.Helper()
	process.Say(t, fmt.Sprintf("%d %d", calls, threads))
	process.Expect(t, "done")
}

// kinds of links: as the kernel offers them, and one by one as older kernels need it.
func eachWay(t *testing.T, test func(t *testing.T, f probe.Features)) {
	f := features(t)
	if f.Multi {
		t.Run("multi", func(t *testing.T) { test(t, f) })
	}
	t.Run("single", func(t *testing.T) { test(t, probe.Features{}) })
}

func TestAttachCountsAllThreads(t *testing.T) {
	eachWay(t, func(t *testing.T, f probe.Features) {
		process, opened, file := startCalls(t)
		other, _, _ := startCalls(t)
		c := newCounter(t, f.AttachType(probe.Entry), false, 0)
		all := newCounter(t, f.AttachType(probe.Entry), true, 0)
		links, err := f.Attach(c.program, file, []probe.Site{site(t, opened, "malloc", 3)}, process.PID(), probe.Entry)
		if err != nil {
			t.Fatal(err)
		}
		defer links.Close()
		frees, err := f.Attach(all.program, file, []probe.Site{site(t, opened, "free", 5)}, process.PID(), probe.Entry)
		if err != nil {
			t.Fatal(err)
		}
		defer frees.Close()
		run(t, process, 1000, 5)
		run(t, other, 1000, 5)
		if got := c.of(t, 3); got != 5000 {
			t.Errorf("counted %d calls of malloc, want 5000", got)
		}
		// The thread library frees a few blocks of its own.
		if got := all.of(t, 5); got < 5000 || got > 5100 {
			t.Errorf("counted %d calls of free, want 5000 and a few", got)
		}
		if err := links.Close(); err != nil {
			t.Fatal(err)
		}
		run(t, process, 1000, 5)
		if got := c.of(t, 3); got != 5000 {
			t.Errorf("%d calls counted after the links were closed", got-5000)
		}
	})
}

func TestReturnProbe(t *testing.T) {
	eachWay(t, func(t *testing.T, f probe.Features) {
		process, opened, file := startCalls(t)
		c := newCounter(t, f.AttachType(probe.Return), true, 0)
		entry, _ := opened.Allocator.Find("malloc")
		if !entry.Choice.StackIntact() {
			t.Fatalf("choice %v moves the stack pointer", entry.Choice)
		}
		links, err := f.Attach(c.program, file, []probe.Site{entry.Site(1)}, process.PID(), probe.Return)
		if err != nil {
			t.Fatal(err)
		}
		defer links.Close()
		run(t, process, 1000, 4)
		if got := c.of(t, 1); got < 4000 || got > 4200 {
			t.Errorf("counted %d returns of malloc, want 4000 and a few", got)
		}
	})
}

func TestSessionDecidesAboutReturns(t *testing.T) {
	f := features(t)
	if !f.Session {
		t.Skip("this kernel has no uprobe sessions")
	}
	process, opened, file := startCalls(t)
	for _, test := range []struct {
		result int32
		runs   uint64
	}{{0, 2}, {1, 1}} {
		c := newCounter(t, f.AttachType(probe.Session), true, test.result)
		links, err := f.Attach(c.program, file, []probe.Site{site(t, opened, "malloc", 1)}, process.PID(), probe.Session)
		if err != nil {
			t.Fatal(err)
		}
		run(t, process, 1000, 4)
		if got := c.of(t, 1); got < 4000*test.runs || got > 4100*test.runs {
			t.Errorf("entry returns %d: %d runs, want %d and a few", test.result, got, 4000*test.runs)
		}
		links.Close()
	}
}

// text reads the start of malloc as the process has it.
func text(t testing.TB, opened *target.Target) []byte {
	t.Helper()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", opened.PID))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	entry, _ := opened.Allocator.Find("malloc")
	code := make([]byte, 64)
	if _, err := memory.ReadAt(code, int64(entry.Address)); err != nil {
		t.Fatal(err)
	}
	return code
}

func TestNothingRemainsAfterClose(t *testing.T) {
	eachWay(t, func(t *testing.T, f probe.Features) {
		process, opened, file := startCalls(t)
		before := text(t, opened)
		c := newCounter(t, f.AttachType(probe.Entry), true, 0)
		for range 30 {
			links, err := f.Attach(c.program, file, []probe.Site{site(t, opened, "malloc", 1)}, process.PID(), probe.Entry)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Equal(text(t, opened), before) {
				t.Fatal("no probe in the text while attached")
			}
			if err := links.Close(); err != nil {
				t.Fatal(err)
			}
			waitForText(t, opened, before)
		}
	})
}

// waitForText waits until the process's text is as before: the kernel may take a link's
// probes out a moment after it was closed.
func waitForText(t testing.TB, opened *target.Target, before []byte) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !bytes.Equal(text(t, opened), before); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("text is % x, was % x", text(t, opened), before)
		}
	}
}

// attachVictim names the environment variable that turns this test binary into a program
// that attaches to the process in it and waits to be killed.
const attachVictim = "MEMTRACE_TEST_ATTACH_TO"

func TestNothingRemainsAfterKill(t *testing.T) {
	if pid, err := strconv.Atoi(os.Getenv(attachVictim)); err == nil {
		attachAndWait(t, pid)
		return
	}
	process, opened, _ := startCalls(t)
	before := text(t, opened)
	for range 5 {
		attacher := exec.Command(os.Args[0], "-test.run=^TestNothingRemainsAfterKill$", "-test.v")
		attacher.Env = append(os.Environ(), fmt.Sprintf("%s=%d", attachVictim, process.PID()))
		out, err := attacher.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := attacher.Start(); err != nil {
			t.Fatal(err)
		}
		for scanner := bufio.NewScanner(out); scanner.Scan() && scanner.Text() != "attached"; {
			continue
		}
		attached := !bytes.Equal(text(t, opened), before)
		attacher.Process.Kill()
		attacher.Wait()
		if !attached {
			t.Fatal("no probe in the text while attached")
		}
		waitForText(t, opened, before)
		run(t, process, 1000, 2)
	}
}

// attachAndWait is the other program of TestNothingRemainsAfterKill.
func attachAndWait(t *testing.T, pid int) {
	f := features(t)
	opened, err := target.Open(t.Context(), pid)
	if err != nil {
		t.Fatal(err)
	}
	file, err := opened.OpenMapped(opened.Allocator.Mapping)
	if err != nil {
		t.Fatal(err)
	}
	c := newCounter(t, f.AttachType(probe.Entry), true, 0)
	if _, err := f.Attach(c.program, file, []probe.Site{site(t, opened, "malloc", 1)}, pid, probe.Entry); err != nil {
		t.Fatal(err)
	}
	fmt.Println("\nattached")
	time.Sleep(time.Hour)
}
