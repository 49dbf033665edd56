package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"memtrace/internal/workload"
)

func TestWrongCommandLines(t *testing.T) {
	self := fmt.Sprint(os.Getpid())
	for _, c := range []struct {
		arguments []string
		words     []string
	}{
		{nil, []string{"--pid", "--help"}},
		{[]string{"--pid"}, []string{"--pid", "--help"}},
		{[]string{"--nonsense"}, []string{"--nonsense", "--help"}},
		{[]string{"--pid", "abc"}, []string{"abc", "number"}},
		{[]string{"--pid", "-4"}, []string{"-4"}},
		{[]string{"--pid", "99999999999999999999"}, []string{"number"}},
		{[]string{"--pid", self, "--", "true"}, []string{"not both"}},
		{[]string{"--pid", self, "--duration", "soon"}, []string{"soon"}},
		{[]string{"--pid", self, "--duration", "-3s"}, []string{"--duration"}},
		{[]string{"--pid", self, "--probes", "alloc,magic"}, []string{"magic", "alloc,arena"}},
		{[]string{"--pid", self, "--max-overhead", "much"}, []string{"percentage"}},
		{[]string{"--pid", self, "--max-overhead", "-1%"}, []string{"percentage"}},
		{[]string{"--pid", self, "--exact", "--max-overhead", "5%"}, []string{"--exact", "--max-overhead"}},
		{[]string{"--pid", self, "--sample-bytes", "0"}, []string{"size"}},
		{[]string{"--pid", self, "--sample-bytes", "few"}, []string{"size"}},
		{[]string{"--pid", self, "--format", "xml"}, []string{"xml", "json"}},
		{[]string{"--pid", self, "--measure", "weight"}, []string{"weight", "alloc-bytes"}},
		{[]string{"--pid", self, "--top", "0"}, []string{"--top"}},
		{[]string{"--pid", self, "--round", "often"}, []string{"often", "every:TIME"}},
		{[]string{"--pid", self, "--round", "every:never"}, []string{"every:60s"}},
		{[]string{"--pid", self, "-o", "report.docx"}, []string{"report.docx", ".json"}},
		{[]string{"trace-it"}, []string{"trace-it", "memtrace -- trace-it"}},
		{[]string{"--pid", self, "word"}, []string{"word", "--"}},
		{[]string{"--", "no-such-command-anywhere"}, []string{"no such command"}},
	} {
		t.Run(strings.Join(c.arguments, " "), func(t *testing.T) {
			oneLine(t, run(t, memtrace(t, c.arguments...)), statusUsage, c.words...)
		})
	}
}

func TestUnwritableOutputs(t *testing.T) {
	directory := t.TempDir()
	for _, path := range []string{"/no/such/directory/report.json", "/proc/report.json", filepath.Join(directory, ".folded")} {
		if strings.HasSuffix(path, ".folded") {
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		// The process does not exist: the output is looked at before it.
		oneLine(t, run(t, memtrace(t, "--pid", "4194999", "-o", path)), statusFailed, "write "+path)
	}
}

func TestUntraceableProcesses(t *testing.T) {
	sleeper := workload.Start(t, workload.Build(t, "nolibc.c", "-static", "-nostdlib", "-fno-stack-protector"))
	gopher := workload.Start(t, buildGopher(t))
	for _, c := range []struct {
		what  string
		pid   int
		words []string
	}{
		{"no such process", 4194999, []string{"no process 4194999"}},
		{"kernel thread", 2, []string{"kernel thread"}},
		{"zombie", zombie(t), []string{"zombie"}},
		{"no allocator", sleeper.PID(), []string{"alloc"}},
		{"Go", gopher.PID(), []string{"Go"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			oneLine(t, run(t, memtrace(t, "--pid", fmt.Sprint(c.pid), "--duration", "1s")), statusUntraceable, c.words...)
		})
	}
}

func TestNoPrivilege(t *testing.T) {
	ticker := workload.Start(t, workload.Build(t, "ticker.c"))
	ticker.Expect(t, "ready")
	command := memtrace(t, "--pid", fmt.Sprint(ticker.PID()), "--duration", "1s")
	// The test binary lies where only root may look: it is started through a descriptor.
	self, err := os.Open(command.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	command.ExtraFiles = []*os.File{self}
	command.Path = "/proc/self/fd/3"
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	oneLine(t, run(t, command), statusUntraceable, "root")
}

// zombie returns the id of a process that has ended and was not waited for.
func zombie(t *testing.T) int {
	t.Helper()
	command := exec.Command("true")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { command.Wait() })
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", command.Process.Pid))
		if err == nil && strings.Contains(string(stat), ") Z ") {
			return command.Process.Pid
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the process did not become a zombie")
	return 0
}

// buildGopher builds a Go program without a C library.
func buildGopher(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	source := filepath.Join(directory, "gopher.go")
	const text = "package main\n\nimport \"time\"\n\nfunc main() { time.Sleep(time.Hour) }\n"
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", filepath.Join(directory, "gopher"), source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return filepath.Join(directory, "gopher")
}
