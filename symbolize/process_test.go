package symbolize

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"memtrace/internal/workload"
)

// buildPlugin compiles plugin.c, whose static function gets the name, to a library.
func buildPlugin(t *testing.T, function string) string {
	t.Helper()
	built := workload.Build(t, "plugin.c", "-shared", "-fPIC", "-DPLUGIN_FUNCTION="+function)
	library := built + "-" + function + ".so"
	if err := os.Rename(built, library); err != nil {
		t.Fatal(err)
	}
	return library
}

// load makes a run of plugins.c load a library and returns the stack that it took.
func load(t *testing.T, p *workload.Process, library string) []uint64 {
	t.Helper()
	p.Say(t, "load "+library)
	return collect(t, p).addresses(t, "frame")
}

func unload(t *testing.T, p *workload.Process) {
	t.Helper()
	p.Say(t, "unload")
	collect(t, p)
}

func startPlugins(t *testing.T) *workload.Process {
	p, _ := run(t, workload.Build(t, "plugins.c", "-ldl"))
	return p
}

func refresh(t *testing.T, s *Symbolizer) int {
	t.Helper()
	if err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	return s.Snapshot()
}

func TestReusedAddressesAreToldApartBySnapshot(t *testing.T) {
	first, second := buildPlugin(t, "first_plugin"), buildPlugin(t, "second_plugin")
	p := startPlugins(t)
	s := open(t, p.PID())

	firstStack := load(t, p, first)
	firstSnapshot := refresh(t, s)
	unload(t, p)
	refresh(t, s)
	secondStack := load(t, p, second)
	secondSnapshot := refresh(t, s)
	if firstStack[0] != secondStack[0] {
		t.Fatalf("the second library lies at %#x, not where the first was, %#x", secondStack[0], firstStack[0])
	}

	for snapshot, want := range map[int]string{
		firstSnapshot: "first_plugin", secondSnapshot: "second_plugin", 0: "second_plugin",
		1: "first_plugin", // taken before either was seen: the first that came
	} {
		frames := s.StackFrames(Stack{Addresses: secondStack, Snapshot: snapshot, Returning: true})
		if have := names(frames); !hasRun(have, []string{want, "plugin_entry", "main"}) {
			t.Errorf("snapshot %d: frames %q, want %s", snapshot, have, want)
		}
	}
}

func TestNamesAfterDeath(t *testing.T) {
	library := buildPlugin(t, "doomed_plugin")
	p := startPlugins(t)
	stack := load(t, p, library)
	s := open(t, p.PID())
	os.Remove(library)
	p.Process.Kill()
	p.Wait()
	if err := s.Refresh(); !errors.Is(err, ErrExited) {
		t.Errorf("Refresh of a dead process: %v, want ErrExited", err)
	}
	have := names(s.StackFrames(Stack{Addresses: stack, Returning: true}))
	if want := []string{"doomed_plugin", "plugin_entry", "main"}; !hasRun(have, want) {
		t.Errorf("frames %q, want %q", have, want)
	}
	if _, err := New(p.PID()); err == nil {
		t.Error("New accepts a process that has exited")
	}
}

// TestReplacedLibrary upgrades a library under the running process: its path then leads to
// another file with other names.
func TestReplacedLibrary(t *testing.T) {
	library, upgrade := buildPlugin(t, "old_plugin"), buildPlugin(t, "new_plugin")
	p := startPlugins(t)
	stack := load(t, p, library)
	if err := os.Rename(upgrade, library); err != nil {
		t.Fatal(err)
	}
	s := open(t, p.PID())
	frames := s.StackFrames(Stack{Addresses: stack, Returning: true})
	if have, want := names(frames), []string{"old_plugin", "plugin_entry", "main"}; !hasRun(have, want) {
		t.Errorf("frames %q, want %q", have, want)
	}
	if f := named(t, frames, "old_plugin"); f.Module != library {
		t.Errorf("module %q, want %q", f.Module, library)
	}
}

// TestAddedMapping names code in a library that was only ever reported by an event.
func TestAddedMapping(t *testing.T) {
	library := buildPlugin(t, "late_plugin")
	p := startPlugins(t)
	s := open(t, p.PID())
	stack := load(t, p, library)
	mappings, err := ReadMaps(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mappings {
		if m.Exec && m.Path == library {
			s.Add(m)
		}
	}
	p.Process.Kill()
	p.Wait()
	have := names(s.StackFrames(Stack{Addresses: stack, Returning: true}))
	if want := []string{"late_plugin", "plugin_entry", "main"}; !hasRun(have, want) {
		t.Errorf("frames %q, want %q", have, want)
	}
}

// TestOtherRoot runs the program in a root directory of its own, where the paths that it has
// mapped mean nothing to this process.
func TestOtherRoot(t *testing.T) {
	root := t.TempDir()
	program := workload.Build(t, "frames.c", "-static")
	if err := os.Rename(program, filepath.Join(root, "frames")); err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string]uintptr{"chroot": 0, "mount namespace": syscall.CLONE_NEWNS} {
		c := exec.Command("/frames")
		c.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Cloneflags: flags}
		p := workload.StartCommand(t, c)
		said := collect(t, p)
		s := open(t, p.PID())
		have := names(s.StackFrames(Stack{Addresses: said.addresses(t, "frame"), Returning: true}))
		want := []string{"take_stack", "inlined_leaf*", "inlined_middle*", "outer_function", "exported_entry", "main"}
		if !hasRun(have, want) {
			t.Errorf("%s: frames %q, want %q", name, have, want)
		}
	}
}

func TestSignalFrames(t *testing.T) {
	p, said := run(t, workload.Build(t, "frames.c"))
	s := open(t, p.PID())
	frames := s.StackFrames(Stack{Addresses: said.addresses(t, "signal"), Returning: true})
	have := names(frames)
	trampoline := "__restore_rt"
	if runtime.GOARCH == "arm64" {
		trampoline = "__kernel_rt_sigreturn" // in the vdso
	}
	if want := []string{"take_stack", "on_signal", trampoline}; !hasRun(have, want) {
		t.Errorf("frames %q, want %q", have, want)
	}
}

func TestStaticData(t *testing.T) {
	p, said := run(t, workload.Build(t, "frames.c"))
	s := open(t, p.PID())
	for key, want := range map[string]string{"lock": "static_lock+0", "counter": "static_counters+24"} {
		name, offset := s.Symbol(said.addresses(t, key)[0])
		if have := fmt.Sprintf("%s+%d", name, offset); have != want {
			t.Errorf("%s is %s, want %s", key, have, want)
		}
	}
	for _, nothing := range []uint64{0, 1, 1 << 63, said.addresses(t, "lock")[0] + 1<<30} {
		if name, offset := s.Symbol(nothing); name != "" {
			t.Errorf("address %#x is %s+%d, want nothing", nothing, name, offset)
		}
	}
}

func TestTemplates(t *testing.T) {
	p, said := run(t, workload.Build(t, "templates.cc"))
	s := open(t, p.PID())
	have := names(s.StackFrames(Stack{Addresses: said.addresses(t, "frame"), Returning: true}))
	want := []string{"scoring::take_stack<long>", "scoring::Parser<long>::each*", "scoring::Parser<long>::parse",
		"run_parser", "main"}
	if !hasRun(have, want) {
		t.Errorf("frames %q, want %q", have, want)
	}
	if name, offset := s.Symbol(said.addresses(t, "object")[0]); name != "scoring::static_envelopes" || offset != 8 {
		t.Errorf("object is %s+%d, want scoring::static_envelopes+8", name, offset)
	}
}

func TestFunctionsByName(t *testing.T) {
	program := workload.Build(t, "templates.cc")
	p, said := run(t, program)
	s := open(t, p.PID())
	found := s.Functions(func(name string) bool { return name == "scoring::Parser<long>::parse" })
	if len(found) != 1 || found[0].Module != program || found[0].Symbol == found[0].Name {
		t.Fatalf("found %+v, want the one function of %s", found, program)
	}
	stack := said.addresses(t, "frame")
	inside := false
	for _, address := range stack {
		inside = inside || (found[0].Address < address && address < found[0].Address+found[0].Size)
	}
	if !inside {
		t.Errorf("function %#x+%d holds none of the stack's addresses %#x", found[0].Address, found[0].Size, stack)
	}
	file, err := OpenFile(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbol := file.Symbols(found[0].Symbol)[found[0].Symbol]
	if offset, ok := file.Offset(symbol.Address); !ok || offset != found[0].Offset {
		t.Errorf("file offset %#x, want %#x", found[0].Offset, offset)
	}
	if near := s.Nearest("run_praser", 3); len(near) != 3 || near[0] != "run_parser" {
		t.Errorf("nearest to run_praser: %q, want run_parser first of 3", near)
	}
	if near := s.Nearest("x", 0); len(near) != 0 {
		t.Errorf("asked for no name, got %q", near)
	}
}

func TestVDSO(t *testing.T) {
	p := startPlugins(t)
	s := open(t, p.PID())
	found := s.Functions(func(name string) bool { return strings.Contains(name, "clock_gettime") })
	for _, f := range found {
		if f.Module != "[vdso]" {
			continue
		}
		have := s.Frames([]uint64{f.Address + 1})[0]
		if have.Module != "[vdso]" || !strings.HasSuffix(have.Function, "clock_gettime") {
			t.Errorf("frame %+v, want clock_gettime in [vdso]", have)
		}
		return
	}
	t.Errorf("no clock_gettime of the vdso in %+v", found)
}

func TestNoMapping(t *testing.T) {
	p := startPlugins(t)
	s := open(t, p.PID())
	have := names(s.Frames([]uint64{16, 0, 1<<64 - 1}))
	if want := []string{"(unmapped)", "(unmapped)", "(unmapped)"}; !hasRun(have, want) {
		t.Errorf("frames %q, want %q", have, want)
	}
	if have := names(s.Frames(nil)); !hasRun(have, []string{"(stack lost)"}) {
		t.Errorf("no addresses: frames %q", have)
	}
}

// TestFileWithoutPrivilege: where neither device and inode agree nor the kernel's link can be
// followed, the code in memory decides.
func TestFileWithoutPrivilege(t *testing.T) {
	library, other := buildPlugin(t, "right_plugin"), workload.Build(t, "frames.c")
	p := startPlugins(t)
	load(t, p, library)
	s := open(t, p.PID())
	var code Mapping
	for _, m := range s.Mappings() {
		if m.Exec && m.Path == library {
			code = m
		}
	}
	code.Dev++   // as some file systems count
	code.Start++ // there is no such link
	code.Offset++
	file, err := s.process.openMapping(code)
	if err != nil {
		t.Fatalf("the file with the same code is refused: %v", err)
	}
	file.Close()
	code.Path = other
	if file, err := s.process.openMapping(code); err == nil {
		file.Close()
		t.Error("a file with other code is accepted")
	}
}

// TestManyAtOnce uses a symbolizer from several goroutines while libraries come and go.
func TestManyAtOnce(t *testing.T) {
	library := buildPlugin(t, "busy_plugin")
	p := startPlugins(t)
	s := open(t, p.PID())
	stack := load(t, p, library)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				s.StackFrames(Stack{Addresses: stack, Snapshot: s.Snapshot(), Returning: true})
				s.Symbol(stack[0])
				s.Mappings()
			}
		})
	}
	group.Go(func() {
		for range 20 {
			if err := s.Refresh(); err != nil {
				t.Error(err)
			}
		}
	})
	group.Wait()
	if have := names(s.StackFrames(Stack{Addresses: stack, Returning: true})); !hasRun(have, []string{"busy_plugin", "plugin_entry"}) {
		t.Errorf("frames %q, want busy_plugin", have)
	}
}

// TestNothingIsLeftOpen counts descriptors and mappings of files around a symbolizer's life.
func TestNothingIsLeftOpen(t *testing.T) {
	p, said := run(t, workload.Build(t, "frames.c"))
	held := func() (int, int) {
		descriptors, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		maps, err := ReadMaps(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		files := 0
		for _, m := range maps {
			if m.FileBacked() {
				files++
			}
		}
		return len(descriptors), files
	}
	descriptors, files := held()
	for range 3 {
		s, err := New(p.PID())
		if err != nil {
			t.Fatal(err)
		}
		named(t, s.StackFrames(Stack{Addresses: said.addresses(t, "frame"), Returning: true}), "main")
		s.Close()
	}
	if d, f := held(); d > descriptors || f > files {
		t.Errorf("%d descriptors and %d file mappings are held, %d and %d before", d, f, descriptors, files)
	}
}
