package target

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"memtrace/internal/workload"
)

// libraryDirectory is where Debian keeps the libraries of this architecture.
func libraryDirectory() string {
	if runtime.GOARCH == "arm64" {
		return "/usr/lib/aarch64-linux-gnu"
	}
	return "/usr/lib/x86_64-linux-gnu"
}

// standIns are the allocators that Debian packages as libraries to preload.
var standIns = map[string]string{
	"jemalloc": "libjemalloc.so.2",
	"tcmalloc": "libtcmalloc_minimal.so.4",
	"mimalloc": "libmimalloc.so.2",
}

// startCalls runs the workload calls.c, built with flags and changed by change, and opens it
// when it has begun.
func startCalls(t *testing.T, change func(*exec.Cmd), flags ...string) *Target {
	t.Helper()
	command := exec.Command(workload.Build(t, "calls.c", flags...))
	if change != nil {
		change(command)
	}
	process := workload.StartCommand(t, command)
	process.Expect(t, "ready")
	return open(t, process.PID())
}

// preload sets LD_PRELOAD.
func preload(libraries ...string) func(*exec.Cmd) {
	return func(c *exec.Cmd) {
		c.Env = append(os.Environ(), "LD_PRELOAD="+strings.Join(libraries, ":"))
	}
}

// expectAllocator checks what every usable allocator has.
func expectAllocator(t *testing.T, opened *Target, name, versionPrefix string) {
	t.Helper()
	a := opened.Allocator
	if a.Name != name || !strings.HasPrefix(a.Version, versionPrefix) || versionPrefix != "" && a.Version == "" {
		t.Fatalf("allocator %q version %q in %s, want %s %s", a.Name, a.Version, a.Path, name, versionPrefix)
	}
	for _, function := range []string{"malloc", "calloc", "realloc", "free"} {
		entry, ok := a.Find(function)
		if a.Static && !ok && (function == "calloc" || function == "realloc") {
			continue // only what the program needs is linked in
		}
		if !ok {
			t.Errorf("%s has no %s", name, function)
			continue
		}
		if entry.Address < a.Mapping.Start || entry.Address >= a.Mapping.End {
			t.Errorf("%s at %#x lies outside the mapping %#x-%#x", function, entry.Address, a.Mapping.Start, a.Mapping.End)
		}
		if !within(a.Inside, entry.Address) {
			t.Errorf("%s at %#x is not inside the allocator %x", function, entry.Address, a.Inside)
		}
	}
	seen := map[uint64]string{}
	for _, entry := range a.Entries {
		if other, twice := seen[entry.Offset]; twice {
			t.Errorf("%s and %s share offset %#x", entry.Name, other, entry.Offset)
		}
		seen[entry.Offset] = entry.Name
	}
}

func within(ranges []Range, address uint64) bool {
	for _, r := range ranges {
		if address >= r.Start && address < r.End {
			return true
		}
	}
	return false
}

func TestPreloadedAllocators(t *testing.T) {
	for name, library := range standIns {
		t.Run(name, func(t *testing.T) {
			opened := startCalls(t, preload(filepath.Join(libraryDirectory(), library)))
			expectAllocator(t, opened, name, "")
			if opened.Allocator.Version == "" {
				t.Error("no version")
			}
			if len(opened.Others) != 0 {
				t.Errorf("others: %v", opened.Others[0].Name)
			}
			for _, operator := range []string{"_Znwm", "_ZdlPv"} {
				if _, ok := opened.Allocator.Find(operator); !ok {
					t.Errorf("no %s", operator)
				}
			}
		})
	}
}

func TestLinkedAllocator(t *testing.T) {
	opened := startCalls(t, nil, "-Wl,--no-as-needed", filepath.Join(libraryDirectory(), standIns["jemalloc"]))
	expectAllocator(t, opened, "jemalloc", "")
}

func TestFirstOfTwoPreloadedIsUsed(t *testing.T) {
	opened := startCalls(t, preload(filepath.Join(libraryDirectory(), standIns["tcmalloc"]), filepath.Join(libraryDirectory(), standIns["mimalloc"])))
	expectAllocator(t, opened, "tcmalloc", "")
	if len(opened.Others) != 1 || opened.Others[0].Name != "mimalloc" {
		t.Errorf("others: %+v, want mimalloc, whose own functions can be called", opened.Others)
	}
}

func TestWrapperIsPassedBy(t *testing.T) {
	wrapper := workload.Build(t, "wrapper.c", "-shared", "-fPIC", "-ldl")
	opened := startCalls(t, preload(wrapper))
	expectAllocator(t, opened, "glibc", "2.")
	if len(opened.Wrappers) != 1 || opened.Wrappers[0] != wrapper {
		t.Errorf("wrappers %q, want %q", opened.Wrappers, wrapper)
	}
}

func TestWrapperBeforeStandIn(t *testing.T) {
	wrapper := workload.Build(t, "wrapper.c", "-shared", "-fPIC", "-ldl")
	opened := startCalls(t, preload(wrapper, filepath.Join(libraryDirectory(), standIns["jemalloc"])))
	expectAllocator(t, opened, "jemalloc", "")
}

func TestStaticGlibc(t *testing.T) {
	for name, flags := range map[string][]string{
		"static": {"-static"}, "static-pie": {"-static-pie"}, "static without line numbers": {"-static", "-g0"},
	} {
		t.Run(name, func(t *testing.T) {
			opened := startCalls(t, nil, flags...)
			expectAllocator(t, opened, "glibc", "2.")
			if !opened.Allocator.Static {
				t.Error("not marked as static")
			}
		})
	}
}

func TestMusl(t *testing.T) {
	for name, flags := range map[string][]string{"dynamic": nil, "static": {"-static"}} {
		version := map[string]string{"dynamic": "1.", "static": ""}[name]
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "calls")
			arguments := append([]string{"-O2", "-g", "-o", program, filepath.Join(workload.Dir(), "calls.c")}, flags...)
			if out, err := exec.Command("musl-gcc", arguments...).CombinedOutput(); err != nil {
				t.Fatalf("musl-gcc: %v\n%s", err, out)
			}
			process := workload.Start(t, program)
			process.Expect(t, "ready")
			expectAllocator(t, open(t, process.PID()), "musl", version)
		})
	}
}

func TestStartedThroughTheDynamicLinker(t *testing.T) {
	linker := map[string]string{"amd64": "/lib64/ld-linux-x86-64.so.2", "arm64": "/lib/ld-linux-aarch64.so.1"}[runtime.GOARCH]
	process := workload.Start(t, linker, workload.Build(t, "calls.c"))
	process.Expect(t, "ready")
	expectAllocator(t, open(t, process.PID()), "glibc", "2.")
}

func TestDebianPrograms(t *testing.T) {
	for name, arguments := range map[string][]string{
		"/usr/bin/python3": {"-c", "import time; print('ready', flush=True); time.sleep(600)"},
		"/usr/bin/perl":    {"-e", "$| = 1; print \"ready\\n\"; sleep 600"},
		"/usr/bin/sqlite3": {":memory:"},
	} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			process := workload.Start(t, name, arguments...)
			if strings.HasSuffix(name, "sqlite3") {
				process.Say(t, "SELECT 'ready';")
			}
			process.Expect(t, "ready")
			expectAllocator(t, open(t, process.PID()), "glibc", "2.")
		})
	}
}

// TestEntriesAgreeWithTheLinker compares the addresses with those that the process itself
// gets from the dynamic linker.
func TestEntriesAgreeWithTheLinker(t *testing.T) {
	script := `import ctypes, time
names = "malloc calloc realloc reallocarray posix_memalign aligned_alloc memalign valloc pvalloc free malloc_trim mallopt".split()
for n in names:
    print(n, hex(ctypes.cast(getattr(ctypes.CDLL("libc.so.6"), n), ctypes.c_void_p).value), flush=True)
time.sleep(600)`
	process := workload.Start(t, "/usr/bin/python3", "-c", script)
	addresses := map[string]string{}
	for _, name := range strings.Fields("malloc calloc realloc reallocarray posix_memalign aligned_alloc memalign valloc pvalloc free malloc_trim mallopt") {
		addresses[name] = process.Expect(t, name+" ")
	}
	opened := open(t, process.PID())
	for name, address := range addresses {
		entry, ok := opened.Allocator.Find(name)
		if got := hexadecimal(entry.Address); !ok || got != address {
			t.Errorf("%s at %s, the dynamic linker says %s", name, got, address)
		}
	}
}
