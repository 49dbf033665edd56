// Package workload builds and runs the C programs whose numbers are known, for tests.
//
// The sources lie in tracer/testdata/workloads. They are compiled when a test asks for
// them, so that a test decides about frame pointers, linking and optimisation.
package workload

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Dir returns the absolute path of the directory that holds the workloads' sources.
func Dir() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "tracer", "testdata", "workloads")
}

// Build compiles the workload source with gcc (g++ for .cc) into a directory of the test
// and returns the program's path. Flags follow "-O2 -g -pthread", so they can overrule them.
// Where there is no compiler, in a virtual machine, the program was built before.
func Build(t testing.TB, source string, flags ...string) string {
	t.Helper()
	if directory := os.Getenv(BuiltBefore); directory != "" {
		program := filepath.Join(directory, BuiltName(source, flags...))
		if _, err := os.Stat(program); err != nil {
			t.Fatalf("%v: add it to the programs that scripts/vm builds", err)
		}
		return program
	}
	program := filepath.Join(t.TempDir(), strings.TrimSuffix(source, filepath.Ext(source)))
	if err := Compile("gcc", program, source, flags...); err != nil {
		t.Fatal(err)
	}
	return program
}

// BuiltBefore is the environment variable that names the directory of programs that were
// built before, each under its BuiltName.
const BuiltBefore = "MEMTRACE_TEST_WORKLOADS"

// BuiltName is the file name of a program that was built before.
func BuiltName(source string, flags ...string) string {
	name := strings.TrimSuffix(source, filepath.Ext(source))
	for _, flag := range flags {
		name += strings.NewReplacer("/", "_", " ", "_").Replace(flag)
	}
	return name
}

// Compile makes a program of a workload source with that gcc, or the g++ of the same name.
func Compile(compiler, program, source string, flags ...string) error {
	if strings.HasSuffix(source, ".cc") {
		compiler = strings.Replace(compiler, "gcc", "g++", 1)
	}
	arguments := append([]string{"-O2", "-g", "-pthread", "-o", program, filepath.Join(Dir(), source)}, flags...)
	if out, err := exec.Command(compiler, arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", compiler, strings.Join(arguments, " "), err, out)
	}
	return nil
}

// Process is a workload that runs under the control of a test.
type Process struct {
	*exec.Cmd
	stdin io.WriteCloser
	lines chan string
}

// Start runs the program and ends it, by its own process id, when the test ends.
func Start(t testing.TB, program string, arguments ...string) *Process {
	t.Helper()
	return StartCommand(t, exec.Command(program, arguments...))
}

// StartCommand is Start for a command that the test has prepared (environment, namespaces).
func StartCommand(t testing.TB, command *exec.Cmd) *Process {
	t.Helper()
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if command.Stderr == nil {
		command.Stderr = os.Stderr
	}
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	if err := command.Start(); err != nil {
		t.Fatalf("start %s: %v", command.Path, err)
	}
	p := &Process{Cmd: command, stdin: stdin, lines: make(chan string, 1024)}
	go p.read(stdout)
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	return p
}

// read hands the program's lines to Expect until its output ends.
func (p *Process) read(stdout io.Reader) {
	defer close(p.lines)
	scanner := bufio.NewScanner(stdout)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		p.lines <- scanner.Text()
	}
}

// PID is the process id in the test's own namespace.
func (p *Process) PID() int { return p.Process.Pid }

// Say writes one line to the program's standard input.
func (p *Process) Say(t testing.TB, line string) {
	t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		t.Fatalf("write %q to the workload: %v", line, err)
	}
}

// Expect reads lines until one starts with prefix and returns the rest of that line. It
// fails the test after a minute, or when the program's output ends first.
func (p *Process) Expect(t testing.TB, prefix string) string {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case line, open := <-p.lines:
			if !open {
				t.Fatalf("the workload's output ended before a line with %q", prefix)
			}
			if rest, found := strings.CutPrefix(line, prefix); found {
				return strings.TrimSpace(rest)
			}
		case <-deadline:
			t.Fatalf("no line with %q from the workload within a minute", prefix)
		}
	}
}
