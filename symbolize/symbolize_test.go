package symbolize

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"memtrace/internal/workload"
	"memtrace/tracer/recording"
)

// facts are the lines "key value" that a workload printed before it was ready.
type facts map[string][]string

// run starts a workload and collects what it prints about itself.
func run(t testing.TB, program string, arguments ...string) (*workload.Process, facts) {
	t.Helper()
	p := workload.Start(t, program, arguments...)
	return p, collect(t, p)
}

// collect reads the facts up to the line "ready".
func collect(t testing.TB, p *workload.Process) facts {
	t.Helper()
	said := facts{}
	for {
		key, value, _ := strings.Cut(p.Expect(t, ""), " ")
		if key == "ready" {
			return said
		}
		said[key] = append(said[key], value)
	}
}

// addresses returns the hexadecimal values of a key.
func (f facts) addresses(t testing.TB, key string) []uint64 {
	t.Helper()
	var values []uint64
	for _, text := range f[key] {
		value, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
		if err != nil {
			t.Fatalf("%s %q: %v", key, text, err)
		}
		values = append(values, value)
	}
	if len(values) == 0 {
		t.Fatalf("the workload said nothing about %s", key)
	}
	return values
}

// open takes hold of a workload.
func open(t testing.TB, pid int) *Symbolizer {
	t.Helper()
	s, err := New(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// names returns the functions of the frames, inlined ones marked by "*".
func names(frames []recording.Frame) []string {
	var list []string
	for _, f := range frames {
		name := f.Function
		if name == "" {
			name = "(" + f.Unresolved + ")"
		}
		if f.Inlined {
			name += "*"
		}
		list = append(list, name)
	}
	return list
}

// named returns the first frame of the function.
func named(t testing.TB, frames []recording.Frame, function string) recording.Frame {
	t.Helper()
	i := slices.IndexFunc(frames, func(f recording.Frame) bool { return f.Function == function })
	if i < 0 {
		t.Fatalf("no frame %q in %q", function, names(frames))
	}
	return frames[i]
}

// hasRun says whether want appears in have without a gap.
func hasRun(have, want []string) bool {
	for i := range have {
		if len(have)-i >= len(want) && slices.Equal(have[i:i+len(want)], want) {
			return true
		}
	}
	return false
}

func TestFramesOfOptimisedProgram(t *testing.T) {
	program := workload.Build(t, "frames.c", "-fomit-frame-pointer")
	p, said := run(t, program)
	s := open(t, p.PID())
	frames := s.StackFrames(Stack{Addresses: said.addresses(t, "frame"), Returning: true})

	want := []string{"take_stack", "inlined_leaf*", "inlined_middle*", "outer_function", "exported_entry", "main"}
	if have := names(frames); !hasRun(have, want) {
		t.Fatalf("frames %q, want %q", have, want)
	}
	for function, key := range map[string]string{"inlined_leaf": "middle_line", "inlined_middle": "outer_line"} {
		line, _ := strconv.Atoi(said[key][0])
		if f := named(t, frames, function); f.Line != line || filepath.Base(f.File) != "frames.c" {
			t.Errorf("%s at %s:%d, want frames.c:%d", function, f.File, f.Line, line)
		}
	}
	if f := named(t, frames, "main"); f.Module != program {
		t.Errorf("main is in module %q, want %q", f.Module, program)
	}
	for _, f := range frames {
		if f.Function == "" && f.Unresolved == "" {
			t.Errorf("frame %+v has neither a name nor a reason", f)
		}
	}
}

func TestPrepareLeavesNothingToLookUp(t *testing.T) {
	p, said := run(t, workload.Build(t, "frames.c"))
	s := open(t, p.PID())
	stack := Stack{Addresses: said.addresses(t, "frame"), Returning: true}
	s.Prepare(t.Context(), []Stack{stack, stack, {Addresses: []uint64{1}}, {}})
	have := names(s.StackFrames(stack))
	if s.missed {
		t.Error("addresses had to be looked up again")
	}
	fresh := open(t, p.PID())
	if want := names(fresh.StackFrames(stack)); !slices.Equal(have, want) {
		t.Errorf("frames %q, want %q as without Prepare", have, want)
	}
}
