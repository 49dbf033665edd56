package main

import (
	"os/exec"
	"strings"
	"testing"
)

// onTerminal runs memtrace with a terminal of its own as all its streams, made by script(1),
// and returns what the terminal showed.
func onTerminal(t *testing.T, variables []string, arguments ...string) string {
	t.Helper()
	command := memtrace(t, arguments...)
	script, err := exec.LookPath("script")
	if err != nil {
		t.Fatalf("%v: scripts/install-packages test installs it", err)
	}
	line := "'" + strings.Join(command.Args, "' '") + "'"
	command.Path, command.Args = script, []string{"script", "-qec", line, "/dev/null"}
	command.Env = append(append(command.Env, "TERM=xterm", "LC_ALL=C.UTF-8"), variables...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func TestPagerAndColoursOnATerminal(t *testing.T) {
	report := []string{"report", sampleRecording}
	paged := onTerminal(t, []string{"PAGER=sed s/^/PAGED/"}, report...)
	if strings.Count(paged, "PAGED") < 50 || !strings.Contains(paged, "\x1b[1m") {
		t.Errorf("the report did not go through the pager, or is not coloured:\n%.400q", paged)
	}
	for name, shown := range map[string]string{
		"--no-pager":     onTerminal(t, []string{"PAGER=sed s/^/PAGED/"}, append(report, "--no-pager")...),
		"PAGER=cat":      onTerminal(t, []string{"PAGER=cat"}, report...),
		"MEMTRACE_PAGER": onTerminal(t, []string{"PAGER=sed s/^/PAGED/", "MEMTRACE_PAGER="}, report...),
		"json":           onTerminal(t, []string{"PAGER=sed s/^/PAGED/"}, append(report, "-f", "json")...),
	} {
		if strings.Contains(shown, "PAGED") || !strings.Contains(shown, "fetch_page") {
			t.Errorf("%s: paged, or no report:\n%.200q", name, shown)
		}
	}
	if plain := onTerminal(t, []string{"PAGER=cat", "NO_COLOR=1"}, report...); strings.Contains(plain, "\x1b[") {
		t.Errorf("NO_COLOR: coloured:\n%.200q", plain)
	}
	// A pager that the reader leaves early is no failure.
	if short := onTerminal(t, []string{"PAGER=head -n 3"}, report...); strings.Contains(short, "memtrace:") || strings.Count(short, "\n") > 4 {
		t.Errorf("a pager that ends early:\n%.400q", short)
	}
}
