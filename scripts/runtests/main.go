// Command runtests runs the module's tests and says how they went: the output of what
// failed, the slow ones, and a last line that counts ("812 passed, 0 failed").
//
// Packages whose tests run workloads attach probes and share the machine's two cores with
// what they measure: those run one package at a time, the rest in parallel.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sort"
	"strings"
	"time"
)

// workloadPackage is imported by the tests that need the machine for themselves.
const workloadPackage = "memtrace/internal/workload"

// packageTimeout bounds one package's tests.
const packageTimeout = "20m"

// slow is how long a test may take before it is listed.
const slow = 10 * time.Second

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "runtests:", err)
		os.Exit(1)
	}
}

// run tests the packages that match the patterns (./... without any).
func run(patterns []string) error {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	parallel, alone, err := split(patterns)
	if err != nil {
		return err
	}
	t := &tally{output: map[string]*strings.Builder{}}
	for _, group := range []struct {
		packages []string
		flags    []string
	}{
		{parallel, nil},
		{alone, []string{"-p", "1"}},
	} {
		if len(group.packages) == 0 {
			continue
		}
		if err := t.test(append(group.flags, group.packages...)); err != nil {
			return err
		}
	}
	t.report(os.Stdout)
	if t.failed > 0 || t.passed == 0 {
		return fmt.Errorf("%d of %d tests failed", t.failed, t.passed+t.failed)
	}
	return nil
}

// split lists the packages whose tests may run beside others, and those that run alone.
func split(patterns []string) (parallel, alone []string, err error) {
	const format = `{{.ImportPath}} {{join .TestImports ","}},{{join .XTestImports ","}}`
	out, err := exec.Command("go", append([]string{"list", "-f", format}, patterns...)...).Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		name, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.Contains(imports, workloadPackage) {
			alone = append(alone, name)
		} else {
			parallel = append(parallel, name)
		}
	}
	return parallel, alone, nil
}

// tally is what the tests came to.
type tally struct {
	passed, failed, skipped int
	slow                    []event
	output                  map[string]*strings.Builder // of tests that have not passed yet
}

// event is one line of `go test -json` (see `go doc test2json`).
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string
}

// test runs `go test` with the arguments and takes in its events. A failing test is not an
// error here; a go command that says nothing is.
func (t *tally) test(arguments []string) error {
	command := exec.Command("go", append([]string{"test", "-json", "-timeout", packageTimeout}, arguments...)...)
	command.Stderr = os.Stderr
	// As memtrace is built: with cgo it could not drop its privileges.
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	stdout, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	events := bufio.NewScanner(stdout)
	events.Buffer(nil, 16<<20)
	for events.Scan() {
		var e event
		if json.Unmarshal(events.Bytes(), &e) != nil {
			fmt.Println(events.Text())
			continue
		}
		t.take(e)
	}
	if err := command.Wait(); err != nil && t.failed == 0 {
		t.failed++
		fmt.Printf("go test: %v, and no test says why\n", err)
	}
	return events.Err()
}

// take counts one event and prints the output of what failed.
func (t *tally) take(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		fmt.Print(e.Output)
	case "output":
		if t.output[key] == nil {
			t.output[key] = &strings.Builder{}
		}
		t.output[key].WriteString(e.Output)
	case "pass", "skip":
		delete(t.output, key)
		t.count(e)
	case "fail":
		t.fail(e, key)
	}
}

// count counts a test that did not fail; a package's own event counts nothing.
func (t *tally) count(e event) {
	if e.Test == "" {
		if e.Action == "pass" {
			fmt.Printf("ok    %-40s %6.1f s\n", e.Package, e.Elapsed)
		}
		return
	}
	if e.Action == "skip" {
		t.skipped++
		return
	}
	t.passed++
	if e.Elapsed >= slow.Seconds() {
		t.slow = append(t.slow, e)
	}
}

// fail counts a failure. A package fails with its tests; it counts itself only when none
// of its tests did, for it then did not build or died.
func (t *tally) fail(e event, key string) {
	if e.Test != "" {
		t.failed++
		fmt.Printf("FAIL  %s %s\n%s", e.Package, e.Test, t.text(key))
		return
	}
	fmt.Printf("FAIL  %-40s %6.1f s\n", e.Package, e.Elapsed)
	for open := range t.output {
		name, test, _ := strings.Cut(open, " ")
		if name == e.Package && test != "" {
			fmt.Printf("unfinished: %s\n%s", test, t.text(open))
		}
	}
	if e.FailedBuild != "" || t.failed == 0 {
		t.failed++
		fmt.Print(t.text(key))
	}
}

// text returns a test's output and forgets it.
func (t *tally) text(key string) string {
	defer delete(t.output, key)
	if t.output[key] == nil {
		return ""
	}
	return t.output[key].String()
}

// report lists the slow tests and ends with the line that CI reads.
func (t *tally) report(w io.Writer) {
	sort.Slice(t.slow, func(i, j int) bool { return t.slow[i].Elapsed > t.slow[j].Elapsed })
	for _, e := range t.slow {
		fmt.Fprintf(w, "slow  %s %s %.1f s\n", e.Package, e.Test, e.Elapsed)
	}
	if t.skipped > 0 {
		fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
		return
	}
	fmt.Fprintf(w, "%d passed, %d failed\n", t.passed, t.failed)
}
