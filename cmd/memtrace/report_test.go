package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"memtrace/tracer/recording"
)

// sampleRecording is a checked-in trace of the workload pollloop.
const sampleRecording = "../../output/testdata/pollloop.json.gz"

func TestReportInEveryFormat(t *testing.T) {
	directory := t.TempDir()
	text, json, folded := filepath.Join(directory, "r.txt"), filepath.Join(directory, "r.json"), filepath.Join(directory, "r.folded")
	got := run(t, memtrace(t, "report", sampleRecording, "-o", text, "-o", json, "-o", folded, "--top", "3"))
	if got.status != 0 || got.stderr != "" {
		t.Fatalf("exit status %d\n%s", got.status, got.stderr)
	}
	if written := read(t, text); written != got.stdout {
		t.Error("the text file and standard output differ")
	}
	for _, word := range []string{"/srv/pollloop/pollloop", "fetch_page", "sites more (--top)"} {
		if !strings.Contains(got.stdout, word) {
			t.Errorf("the report lacks %q", word)
		}
	}
	if again := run(t, memtrace(t, "report", json, "--top", "3")); again.stdout != got.stdout {
		t.Error("the report of the written recording differs")
	}
	if stdout := run(t, memtrace(t, "report", "-f", "folded", sampleRecording)).stdout; stdout != read(t, folded) {
		t.Error("the folded file and standard output differ")
	}
	quiet := run(t, memtrace(t, "report", sampleRecording, "-q", "--measure", "alloc-count", "-o", folded))
	if quiet.status != 0 || quiet.stdout != "" || !strings.Contains(read(t, folded), "fetch_page;malloc 2") {
		t.Errorf("--quiet --measure: status %d, wrote %q", quiet.status, quiet.stdout)
	}
}

func TestReportReadsStandardInput(t *testing.T) {
	file, err := os.Open(sampleRecording)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	command := memtrace(t, "report", "-")
	command.Stdin = file
	if got := run(t, command); got.status != 0 || !strings.Contains(got.stdout, "fetch_page") {
		t.Errorf("status %d: %s", got.status, got.stderr)
	}
}

// The committed memory of an incident: a restart with a cap of the arenas in the middle.
func TestReportOfASoak(t *testing.T) {
	soak := writeSoakFile(t, "soak.jsonl", 1458)
	directory := t.TempDir()
	got := run(t, memtrace(t, "report", soak, "-o", filepath.Join(directory, "s.json"), "-o", filepath.Join(directory, "s.txt")))
	if got.status != 0 || !strings.Contains(got.stdout, "plateau") || read(t, filepath.Join(directory, "s.txt")) != got.stdout {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	if json := read(t, filepath.Join(directory, "s.json")); !strings.Contains(json, `"kind": "plateau"`) {
		t.Errorf("the JSON report lacks the verdict:\n%s", json)
	}
	for _, arguments := range [][]string{{"-o", filepath.Join(directory, "s.folded")}, {"-f", "folded"}, {"--http", "localhost:0"}} {
		oneLine(t, run(t, memtrace(t, append([]string{"report", soak}, arguments...)...)), statusUsage, "soak")
	}
}

func TestReportOfWrongFiles(t *testing.T) {
	directory := t.TempDir()
	torn := filepath.Join(directory, "torn.json.gz")
	whole := read(t, sampleRecording)
	for name, content := range map[string]string{
		torn: whole[:len(whole)/2], filepath.Join(directory, "empty.json"): "",
		filepath.Join(directory, "other.json"): "{}", filepath.Join(directory, "torn.jsonl"): `{"schema":"memtrace-soak/1","tar`,
	} {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		oneLine(t, run(t, memtrace(t, "report", name)), statusFailed, "read "+name)
	}
	oneLine(t, run(t, memtrace(t, "report", "/no/such/file.json")), statusFailed, "read /no/such/file.json: no such file")
	oneLine(t, run(t, memtrace(t, "report", directory)), statusFailed, "directory")
	oneLine(t, run(t, memtrace(t, "report")), statusUsage, "memtrace report FILE")
	oneLine(t, run(t, memtrace(t, "report", torn, torn)), statusUsage, "one recording")
	oneLine(t, run(t, memtrace(t, "report", torn, "--top", "0")), statusUsage, "--top")
	oneLine(t, run(t, memtrace(t, "report", torn, "--format", "xml")), statusUsage, "xml")
	oneLine(t, run(t, memtrace(t, "report", torn, "--http", "far:away:1")), statusUsage, "localhost:8080")
}

// A pager gets the text only on a terminal; here nothing is one.
func TestNoPagerInAPipe(t *testing.T) {
	command := memtrace(t, "report", sampleRecording)
	command.Env = append(command.Env, "PAGER=echo paged; cat >/dev/null")
	if got := run(t, command); got.status != 0 || strings.Contains(got.stdout, "paged") {
		t.Errorf("status %d, wrote %.40q", got.status, got.stdout)
	}
}

func TestPagerProgram(t *testing.T) {
	for _, c := range []struct {
		variables map[string]string
		want      string
	}{
		{map[string]string{"PAGER": "most -s"}, "most -s"},
		{map[string]string{"PAGER": "most", "MEMTRACE_PAGER": "less -S"}, "less -S"},
		{map[string]string{"PAGER": "cat"}, ""},
		{map[string]string{"PAGER": ""}, ""},
	} {
		lookup := func(name string) (string, bool) { v, set := c.variables[name]; return v, set }
		if got := pagerProgram(lookup); got != c.want {
			t.Errorf("%v: got %q, want %q", c.variables, got, c.want)
		}
	}
}

func TestServeOnlyUnderLoopbacksName(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	e := &environment{stdout: io.Discard, stderr: io.Discard}
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "top") })
	go func() { done <- e.serveHandlers(ctx, listener, map[string]http.Handler{"/top": page}) }()
	for host, want := range map[string]int{"": 200, "localhost:80": 200, "evil.example": 403} {
		request, _ := http.NewRequest("GET", "http://"+listener.Addr().String()+"/top", nil)
		request.Host = host
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("host %q: status %d, want %d", host, response.StatusCode, want)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// read returns a file's contents.
func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// writeSoakFile writes a soak of 28 samples, five minutes apart, around a level of
// committed memory in MiB.
func writeSoakFile(t *testing.T, name string, level uint64) string {
	t.Helper()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var file bytes.Buffer
	encoder := json.NewEncoder(&file)
	encoder.Encode(recording.SoakHeader{Schema: recording.SoakSchema, Every: "5m0s", EveryNS: int64(5 * time.Minute), Started: start,
		Target: recording.Target{PID: 4242, Command: "ledgerd"}})
	for i := range 28 {
		const mib = 1 << 20
		at := time.Duration(i) * 5 * time.Minute
		encoder.Encode(recording.Sample{Time: start.Add(at), BootNS: int64(at) + 1, PID: 4242, StartTicks: level, Heap: true,
			CommittedBytes: level*mib + uint64(i*7%5)*mib/2, LiveBytes: 44 * mib, FreeBytes: (level - 44) * mib, FreeResidentBytes: (level - 60) * mib,
			Arenas: int(level / 80), Threads: 19, CPUNS: int64(at) / 50, Voluntary: uint64(i) * 3000, Nonvoluntary: uint64(i) * 40})
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, file.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// The locale decides whether the text keeps to ASCII; files always hold all of Unicode.
func TestPlainTextByLocale(t *testing.T) {
	for _, c := range []struct {
		variables []string
		ascii     bool
	}{
		{[]string{"LC_ALL=C"}, true},
		{[]string{"LC_ALL=", "LC_CTYPE=", "LANG=POSIX"}, true},
		{[]string{"LC_ALL=", "LC_CTYPE=", "LANG=de_DE.UTF-8"}, false},
		{[]string{"LC_ALL=", "LC_CTYPE=C.utf8", "LANG=C"}, false},
		{[]string{"LC_ALL=", "LC_CTYPE=", "LANG="}, false},
	} {
		command := memtrace(t, "report", sampleRecording)
		command.Env = append(command.Env, c.variables...)
		got := run(t, command)
		ascii := strings.IndexFunc(got.stdout, func(r rune) bool { return r > unicode.MaxASCII }) < 0
		if got.status != 0 || ascii != c.ascii {
			t.Errorf("%v: status %d, only ASCII: %v", c.variables, got.status, ascii)
		}
	}
}

// The recording opens in pprof's own web interface.
func TestReportInPprofsWebInterface(t *testing.T) {
	command := memtrace(t, "report", sampleRecording, "--http", "127.0.0.1:0")
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stderr).ReadString('\n')
	_, rest, found := strings.Cut(line, "http://")
	if err != nil || !found {
		t.Fatalf("no address: %q, %v", line, err)
	}
	address, _, _ := strings.Cut(rest, "/")
	for path, want := range map[string]string{"": "fetch_page", "top": "fetch_page", "peek?f=fetch_page": "run_query"} {
		response, err := http.Get("http://" + address + "/" + path)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(page), want) {
			t.Errorf("/%s: status %d, lacks %q (%v)", path, response.StatusCode, want, err)
		}
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
}
