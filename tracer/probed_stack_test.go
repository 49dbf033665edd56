package tracer

import (
	"os"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"memtrace/internal/workload"
	"memtrace/symbolize"
	"memtrace/tracer/probe"
	"memtrace/tracer/recording"
)

// TestStackThroughProbedReturn: a stack is whole although somebody probes the return of one of
// its functions, and the kernel has put another return address there.
func TestStackThroughProbedReturn(t *testing.T) {
	p := workload.Start(t, workload.Build(t, "calls.c", "-fomit-frame-pointer"))
	p.Expect(t, "ready")
	s := startSession(t, Options{PID: p.PID(), Probes: []string{"alloc"}, Exact: true, Round: "none"})
	probeReturn(t, s, "allocate")
	p.Say(t, "100 2")
	p.Expect(t, "done")
	rec := finishSession(t, s)
	found := false
	for _, site := range rec.Allocation.Sites {
		if site.Stack[0].Function != "allocate" {
			continue
		}
		found = true
		var names []string
		for _, frame := range site.Stack {
			names = append(names, frame.Function)
		}
		if len(names) < 3 || slices.ContainsFunc(site.Stack, func(f recording.Frame) bool { return f.Unresolved == "unmapped" }) {
			t.Errorf("the stack ends early: %q", names)
		}
	}
	if !found {
		t.Error("no site in allocate")
	}
	if rec.Losses.StacksTruncated != 0 || rec.Losses.StacksGuessed != 0 {
		t.Errorf("stacks: %+v", rec.Losses)
	}
}

// probeReturn puts an empty return probe at a function of the program, for the test's time.
func probeReturn(t *testing.T, s *Session, name string) {
	t.Helper()
	features := s.kernel.features
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Kprobe, AttachType: features.AttachType(probe.Return), License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	functions := s.tracee.symbols.Functions(func(known string) bool { return known == name })
	at := slices.IndexFunc(functions, func(f symbolize.Function) bool { return f.Module == s.tracee.target.Exe })
	if at < 0 {
		t.Fatalf("functions %+v", functions)
	}
	file, err := os.Open(functions[at].Module)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	links, err := features.Attach(program, file, []probe.Site{{Offset: functions[at].Offset}}, s.tracee.pid, probe.Return)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { links.Close() })
}
