package symbolize

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"memtrace/internal/workload"
)

// jitNames runs jit.c, which may write its map elsewhere, lets arrange change the map, and
// returns the names of its three addresses.
func jitNames(t *testing.T, arrange func(path string, pid int), arguments ...string) []string {
	t.Helper()
	p, said := run(t, workload.Build(t, "jit.c"), arguments...)
	proper := fmt.Sprintf("/tmp/perf-%d.map", p.PID())
	t.Cleanup(func() { os.Remove(proper) })
	if arrange != nil {
		arrange(proper, p.PID())
	}
	s := open(t, p.PID())
	var have []string
	for _, address := range said.addresses(t, "code") {
		have = append(have, names(s.Frames([]uint64{address}))...)
	}
	return have
}

var unnamed = []string{"(jit)", "(jit)", "(jit)"}

func TestJITCodeIsNamedByPerfMap(t *testing.T) {
	want := []string{"LazyCompile:*scoreEnvelope /app/scorer.js:12", "Builtin:ArrayPush", "(jit)"}
	if have := jitNames(t, nil); !slices.Equal(have, want) {
		t.Errorf("names %q, want %q", have, want)
	}
}

// TestPerfMapThatCannotBeBelieved: others may write to /tmp too.
func TestPerfMapThatCannotBeBelieved(t *testing.T) {
	directory, err := os.MkdirTemp("/tmp", "memtrace") // where a link to it can be made
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	elsewhere := filepath.Join(directory, "map")
	fail := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, arrange := range map[string]func(path string, pid int){
		"absent":          func(path string, _ int) {},
		"of another user": func(path string, _ int) { fail(os.Rename(elsewhere, path)); fail(os.Chown(path, 65534, 65534)) },
		"a symbolic link": func(path string, _ int) { fail(os.Symlink(elsewhere, path)) },
		"a hard link":     func(path string, _ int) { fail(os.Link(elsewhere, path)) },
		"a pipe":          func(path string, _ int) { fail(syscall.Mkfifo(path, 0o600)) },
		"a directory":     func(path string, _ int) { fail(os.Mkdir(path, 0o700)) },
		"of another number": func(path string, pid int) {
			other := fmt.Sprintf("/tmp/perf-%d0.map", pid)
			fail(os.Rename(elsewhere, other))
			t.Cleanup(func() { os.Remove(other) })
		},
	} {
		if have := jitNames(t, arrange, elsewhere); !slices.Equal(have, unnamed) {
			t.Errorf("%s: names %q, want none", name, have)
		}
	}
}

// TestPerfMapInContainer: the map is named after the inner number and lies in the target's own
// /tmp.
func TestPerfMapInContainer(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(workload.Build(t, "jit.c", "-static"), filepath.Join(root, "jit")); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("/jit")
	c.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	p := workload.StartCommand(t, c)
	said := collect(t, p)
	if path := said["map"][0]; path != "/tmp/perf-1.map" {
		t.Fatalf("the map is %s, not of the first process", path)
	}
	s := open(t, p.PID())
	have := names(s.Frames(said.addresses(t, "code")[:1]))
	if want := []string{"LazyCompile:*scoreEnvelope /app/scorer.js:12"}; !slices.Equal(have, want) {
		t.Errorf("names %q, want %q", have, want)
	}
}

func TestPerfMapGrows(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "map"))
	if err != nil {
		t.Fatal(err)
	}
	m := &perfMap{file: file}
	defer m.close()
	for _, step := range []struct{ text, want string }{
		{"", ""},
		{"1000 100 first\n", "first"},
		{"1000 80 sec", "first"}, // the line is not whole yet
		{"ond\n", "second"},      // and is read once it is
		{"ffff\nnot a line\n", "second"},
		{"0x1000 0x20 third of all\r\n", "third of all"},
		{"fffffffffffffff0 ff wraps\n1010 0 empty\n", "third of all"},
		{strings.Repeat("x", 100_000) + "\n1000 20 last\n", "last"},
	} {
		if _, err := file.WriteString(step.text); err != nil {
			t.Fatal(err)
		}
		if have, _ := m.lookup(0x1010); have != step.want {
			t.Errorf("after %.40q: %q, want %q", step.text, have, step.want)
		}
	}
	if name, _ := m.lookup(0x10f0); name != "first" {
		t.Errorf("0x10f0 is %q, want first: later code does not reach it", name)
	}
}
