package symbolize

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"memtrace/internal/workload"
)

// command runs a tool of the compiler's and fails the test with its output.
func command(t testing.TB, name string, arguments ...string) {
	t.Helper()
	if out, err := exec.Command(name, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, out)
	}
}

// frameNames runs a build of frames.c and returns the names of its stack.
func frameNames(t *testing.T, program string) []string {
	t.Helper()
	p, said := run(t, program)
	s := open(t, p.PID())
	return names(s.StackFrames(Stack{Addresses: said.addresses(t, "frame"), Returning: true}))
}

func TestStrippedProgramSaysSo(t *testing.T) {
	program := workload.Build(t, "frames.c", "-rdynamic")
	command(t, "strip", program)
	have := frameNames(t, program)
	if want := []string{"(stripped)", "(stripped)", "exported_entry"}; !hasRun(have, want) {
		t.Errorf("frames %q, want %q: .dynsym has exported_entry only", have, want)
	}
}

func TestSeparateDebugFileByLink(t *testing.T) {
	for _, place := range []string{"frames.debug", ".debug/frames.debug"} {
		program := workload.Build(t, "frames.c", "-Wl,--build-id=none")
		separate := filepath.Join(filepath.Dir(program), place)
		if err := os.MkdirAll(filepath.Dir(separate), 0o755); err != nil {
			t.Fatal(err)
		}
		command(t, "objcopy", "--only-keep-debug", program, separate)
		command(t, "strip", program)
		command(t, "objcopy", "--add-gnu-debuglink="+separate, program)
		have := frameNames(t, program)
		want := []string{"take_stack", "inlined_leaf*", "inlined_middle*", "outer_function", "exported_entry", "main"}
		if !hasRun(have, want) {
			t.Errorf("%s: frames %q, want %q", place, have, want)
		}
	}
}

func TestDebugFileOfAnotherBuildIsRefused(t *testing.T) {
	program := workload.Build(t, "frames.c", "-Wl,--build-id=none")
	separate := filepath.Join(filepath.Dir(program), "frames.debug")
	command(t, "objcopy", "--only-keep-debug", program, separate)
	command(t, "strip", program)
	command(t, "objcopy", "--add-gnu-debuglink="+separate, program)
	file, err := os.OpenFile(separate, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("changed"); err != nil {
		t.Fatal(err)
	}
	file.Close()
	if have := frameNames(t, program); slices.Contains(have, "take_stack") {
		t.Errorf("frames %q come from a debug file whose checksum differs", have)
	}
}

// TestSeparateDebugFileByBuildID needs a debug file below /usr/lib/debug of the target's root:
// the directory below the test's own serves as that root.
func TestSeparateDebugFileByBuildID(t *testing.T) {
	for _, compressed := range []string{"none", "zlib"} {
		program := workload.Build(t, "frames.c")
		whole, err := OpenFile(program)
		if err != nil {
			t.Fatal(err)
		}
		id := whole.BuildID()
		whole.Close()
		root := t.TempDir()
		separate := filepath.Join(root, "usr/lib/debug/.build-id", id[:2], id[2:]+".debug")
		if err := os.MkdirAll(filepath.Dir(separate), 0o755); err != nil {
			t.Fatal(err)
		}
		command(t, "objcopy", "--only-keep-debug", "--compress-debug-sections="+compressed, program, separate)
		command(t, "strip", program)

		p, said := run(t, program)
		s := open(t, p.PID())
		moveRoot(t, s, root)
		have := names(s.StackFrames(Stack{Addresses: said.addresses(t, "frame"), Returning: true}))
		want := []string{"take_stack", "inlined_leaf*", "inlined_middle*", "outer_function", "exported_entry", "main"}
		if !hasRun(have, want) {
			t.Errorf("compressed %s: frames %q, want %q", compressed, have, want)
		}
	}
}

// moveRoot makes a directory the place where the symbolizer looks for the target's files.
func moveRoot(t *testing.T, s *Symbolizer, root string) {
	t.Helper()
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(s.process.root)
	s.process.root = fd
}

// TestDebugdata makes .gnu_debugdata as Fedora does: the symbols that .dynsym lacks, in an
// ELF file of their own, compressed with xz, here in several blocks.
func TestDebugdata(t *testing.T) {
	for _, blocks := range []string{"--block-size=0", "--block-size=1000"} {
		program := workload.Build(t, "frames.c", "-rdynamic")
		mini := filepath.Join(t.TempDir(), "mini")
		command(t, "objcopy", "--only-keep-debug", program, mini+".debug")
		command(t, "objcopy", "-S", "--remove-section=.comment", "--keep-symbol=take_stack",
			"--keep-symbol=outer_function", "--keep-symbol=main", mini+".debug", mini)
		command(t, "xz", "--threads=1", blocks, mini)
		command(t, "strip", program)
		command(t, "objcopy", "--add-section", ".gnu_debugdata="+mini+".xz", program)
		have := frameNames(t, program)
		if want := []string{"take_stack", "outer_function", "exported_entry", "main"}; !hasRun(have, want) {
			t.Errorf("%s: frames %q, want %q", blocks, have, want)
		}
	}
}
