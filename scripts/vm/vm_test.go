package vm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"memtrace/internal/workload"
)

// bootTimeout bounds one machine, from power on to the verdict.
const bootTimeout = 9 * time.Minute

// suites are the packages whose tests run in the machines, and which of their tests: those
// that need no compiler and no other program there.
var suites = []struct{ name, tests string }{
	{"tracer", "TestExactCounts/8_threads|TestAllProbes|TestArenas|TestMemoryCalls|TestSampledCounts|TestIdentities|TestTwoSessions|TestConfinedProcess|TestHeldProcesses|TestStackThroughProbedReturn|TestFutexCounts/exact_true"},
	{"tracer/probe", "TestAttachCountsAllThreads|TestReturnProbe|TestTargetExits|TestNothingRemains"},
	{"tracer/heap", "TestSnapshotEqualsMallinfo/^(holes|fast_bins|thread_arenas|mmapped_chunks|drift)$"},
	{"cmd/memtrace", "TestDoctorOn|TestFirstAllocation|TestDurationEndsTheCommand|TestHeapCommand"},
}

// programs are the workloads that those tests build.
var programs = []struct {
	source string
	flags  []string
}{
	{"counts.c", []string{"-fno-builtin", "-fno-omit-frame-pointer", "-Wl,-z,now"}},
	{"counts.c", []string{"-fno-builtin", "-fno-omit-frame-pointer", "-static"}},
	{"counts.c", []string{"-fno-builtin", "-fno-omit-frame-pointer"}},
	{"futexes.c", nil},
	{"identities.c", nil},
	{"calls.c", []string{"-fomit-frame-pointer"}},
	{"confined.c", nil},
	{"calls.c", nil},
	{"arenas.c", nil},
	{"maps.c", nil},
	{"heapshape.c", nil},
	{"ticker.c", nil},
	{"firstalloc.c", []string{"-Wl,-z,lazy"}},
	{"firstalloc.c", []string{"-static"}},
}

// TestKernels runs the kernel tests on the kernels of Debian releases. It passes only when
// the machine printed its verdict.
func TestKernels(t *testing.T) {
	for _, m := range Machines {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel() // each machine keeps one processor busy
			kernel, err := m.FetchKernel(t.Context(), "..")
			if err != nil {
				t.Fatal(err)
			}
			initrd := filepath.Join(t.TempDir(), "initrd")
			if err := m.image(t).write(initrd); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), bootTimeout)
			defer cancel()
			said, err := m.Boot(ctx, kernel, initrd)
			if err != nil {
				t.Errorf("%v\n%s", err, said)
			}
			for line := range strings.Lines(said) {
				if strings.Contains(line, "--- ") || strings.HasPrefix(line, "init: ") {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
}

// image collects what the machine's file system holds.
func (m Machine) image(t *testing.T) image {
	t.Helper()
	work := t.TempDir()
	i := image{files: map[string]string{}, contents: map[string]string{}}
	i.files["init"] = m.build(t, work, "build", "scripts/vm/init")
	var list strings.Builder
	for _, s := range suites {
		name := strings.ReplaceAll(s.name, "/", "-") + ".test"
		i.files["tests.d/"+name] = m.build(t, work, "test", s.name)
		fmt.Fprintf(&list, "/tests.d/%s %s\n", name, s.tests)
	}
	i.contents["tests"] = list.String()
	for _, p := range programs {
		name := workload.BuiltName(p.source, p.flags...)
		file := filepath.Join(work, name)
		if err := workload.Compile(m.GCC, file, p.source, p.flags...); err != nil {
			t.Fatal(err)
		}
		i.files["workloads/"+name] = file
	}
	for _, library := range append(m.Libraries, m.Loader) {
		file, err := filepath.EvalSymlinks(m.Sysroot + library)
		if err != nil {
			t.Fatal(err)
		}
		i.files[library] = file
	}
	return i
}

// build builds a package for the machine, or its tests, as one static program.
func (m Machine) build(t *testing.T, work, how, name string) string {
	t.Helper()
	file := filepath.Join(work, strings.ReplaceAll(name, "/", "-")+"."+how)
	arguments := map[string][]string{"build": {"build"}, "test": {"test", "-c"}}[how]
	command := exec.Command("go", append(arguments, "-trimpath", "-ldflags", "-s -w", "-o", file, "memtrace/"+name)...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+m.Arch)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build %s for %s: %v\n%s", name, m.Arch, err, out)
	}
	return file
}
