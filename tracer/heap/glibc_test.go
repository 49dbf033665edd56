package heap

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/procfs"

	"memtrace/internal/workload"
)

// fetchGlibc unpacks the C library of a Debian release and returns its directory.
func fetchGlibc(t *testing.T, release string, packages ...string) string {
	t.Helper()
	command := exec.Command("../../scripts/fetch-packages", append([]string{release}, packages...)...)
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		t.Fatalf("no C library of %s (a Debian mirror is needed once): %v\n%s", release, err, problems.String())
	}
	return strings.TrimSpace(string(out))
}

// triplet is the directory of libraries on this machine.
func triplet() string {
	return map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
}

// buildForAll builds the workload against the oldest glibc, so that it runs on all.
func buildForAll(t *testing.T) string {
	root := fetchGlibc(t, "bullseye", "libc6", "libc6-dev")
	lib := filepath.Join(root, "usr/lib", triplet())
	return workload.Build(t, "heapshape.c", "--sysroot="+root, "-B"+lib+"/", "-L"+lib,
		"-idirafter", "/usr/include", "-idirafter", "/usr/include/"+triplet())
}

// startUnder runs the program through the loader and library of an unpacked glibc.
func startUnder(t *testing.T, root, program string) *workload.Process {
	lib := filepath.Join(root, "lib", triplet())
	loaders, err := filepath.Glob(filepath.Join(lib, "ld-linux-*.so.*"))
	if err != nil || len(loaders) != 1 {
		t.Fatalf("loaders in %s: %v, %v", lib, loaders, err)
	}
	return workload.Start(t, loaders[0], "--library-path", lib, program)
}

func TestOtherGlibcs(t *testing.T) {
	program := buildForAll(t)
	for release, packages := range map[string][]string{
		"bullseye": {"libc6", "libc6-dev"}, // 2.31
		"bookworm": {"libc6", "libc6-dbg"}, // 2.36
		"trixie":   {"libc6"},              // 2.41
		"sid":      {"libc6"},              // 2.43 or later
	} {
		root := fetchGlibc(t, release, packages...)
		for name, commands := range shapes {
			t.Run(release+"/"+name, func(t *testing.T) {
				p := startUnder(t, root, program)
				shaped(t, p, commands)
				compare(t, p)
			})
		}
	}
}

func TestStaticGlibc(t *testing.T) {
	for name, flags := range map[string][]string{"with symbols": {"-static"}, "stripped": {"-static", "-s"}} {
		program := workload.Build(t, "heapshape.c", flags...)
		for _, shape := range []string{"fresh", "mixed", "fast bins", "thread arenas", "mmapped chunks"} {
			t.Run(name+"/"+shape, func(t *testing.T) {
				p := workload.Start(t, program)
				shaped(t, p, shapes[shape])
				h := compare(t, p)
				if h.Allocator.Path != program {
					t.Errorf("glibc found in %s, linked into %s", h.Allocator.Path, program)
				}
			})
		}
	}
}

// The debug package's symbols and the search by invariants must lead to the same place;
// the target lives in a root directory of its own, where its debug file lies too.
func TestSymbolsAgreeWithInvariants(t *testing.T) {
	root := inOwnRoot(t, fetchGlibc(t, "bookworm", "libc6", "libc6-dbg"))
	copyFile(t, buildForAll(t), filepath.Join(root, "heapshape"))
	command := exec.Command("/heapshape")
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	command.Dir = "/"
	p := workload.StartCommand(t, command)
	shaped(t, p, []string{"threads 3 500", "mixed 2000"})
	h := compare(t, p)
	if !strings.HasPrefix(h.Allocator.Version, "2.36") {
		t.Errorf("version %q", h.Allocator.Version)
	}

	process, err := procfs.NewProc(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	space, err := readSpace(process)
	if err != nil {
		t.Fatal(err)
	}
	lib, err := findLibrary(p.PID(), space.maps)
	if err != nil {
		t.Fatal(err)
	}
	defer lib.file.Close()
	symbols := stateSymbols(p.PID(), lib)
	if symbols == nil {
		t.Fatal("the debug file in the target's root was not found")
	}
	found, err := locate(processMemory(p.PID()), lib, nil, space.page, space.heapStart)
	if err != nil {
		t.Fatal(err)
	}
	if found.MainArena != symbols["main_arena"] || found.Params != symbols["mp_"] {
		t.Errorf("by invariants main_arena %#x and mp_ %#x, by symbols %#x", found.MainArena, found.Params, symbols)
	}
}

// inOwnRoot makes a root directory of what a program needs of an unpacked glibc.
func inOwnRoot(t *testing.T, unpacked string) string {
	t.Helper()
	root := t.TempDir()
	for _, part := range []string{"lib", "lib64", "usr"} {
		if err := os.CopyFS(filepath.Join(root, part), os.DirFS(filepath.Join(unpacked, part))); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o755); err != nil {
		t.Fatal(err)
	}
}
