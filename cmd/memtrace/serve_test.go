package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"memtrace/internal/workload"
)

// freeAddress finds a loopback address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// serve runs memtrace serve inside the test until the test ends.
func serve(t *testing.T, arguments ...string) (address string) {
	t.Helper()
	address = freeAddress(t)
	ctx, cancel := context.WithCancel(context.Background())
	e := &environment{stdout: io.Discard, stderr: io.Discard}
	ended := make(chan int, 1)
	go func() { ended <- e.run(ctx, append([]string{"serve", "--listen", address}, arguments...)) }()
	t.Cleanup(func() {
		cancel()
		if status := <-ended; status != 0 {
			t.Errorf("memtrace serve ended with status %d", status)
		}
	})
	eventually(t, "memtrace serve answers", func() bool { return get(t, "http://"+address+"/-/ready") != "" })
	return address
}

// eventually waits until a condition holds, a minute at most.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// get returns the body of a successful answer, "" otherwise.
func get(t *testing.T, address string) string {
	t.Helper()
	answer, err := http.Get(address)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}

// account is the churning workload's own account of itself: its counts at its times.
type account struct {
	mutex sync.Mutex
	times []float64 // seconds
	count []float64
}

// churn starts the workload and reads its account.
func churn(t *testing.T) (pid int, own *account) {
	t.Helper()
	command := exec.Command(workload.Build(t, "churn.c"))
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	own = &account{}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var ns, allocs float64
			if n, _ := fmt.Sscanf(lines.Text(), "at %f %f", &ns, &allocs); n == 2 {
				own.mutex.Lock()
				own.times, own.count = append(own.times, ns/1e9), append(own.count, allocs)
				own.mutex.Unlock()
			}
		}
	}()
	t.Cleanup(func() {
		stdin.Close()
		<-read
		command.Wait()
	})
	return command.Process.Pid, own
}

// at interpolates the count at a time.
func (a *account) at(t *testing.T, seconds float64) float64 {
	t.Helper()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for i := 1; i < len(a.times); i++ {
		if a.times[i-1] <= seconds && seconds <= a.times[i] {
			part := (seconds - a.times[i-1]) / (a.times[i] - a.times[i-1])
			return a.count[i-1] + part*(a.count[i]-a.count[i-1])
		}
	}
	t.Fatalf("the workload has no account of the time %f", seconds)
	return 0
}

// TestServeAgainstPrometheus has a real Prometheus scrape memtrace serve: what its samples
// say was allocated between two of them is what the workload itself counted.
func TestServeAgainstPrometheus(t *testing.T) {
	pid, own := churn(t)
	address := serve(t, "--pid", strconv.Itoa(pid), "--every", "1s", "--probes", "alloc,arena", "--max-overhead", "off")
	prometheus := startPrometheus(t, address)
	var samples [][2]float64
	eventually(t, "Prometheus has ten samples", func() bool {
		samples = query(t, prometheus, `memtrace_allocs_total{thread="churn"}[5m]`)
		return len(samples) >= 10
	})
	time.Sleep(200 * time.Millisecond) // until the workload's account covers the last sample
	first, last := samples[1], samples[len(samples)-1]
	rate := (last[1] - first[1]) / (last[0] - first[0])
	truth := (own.at(t, last[0]) - own.at(t, first[0])) / (last[0] - first[0])
	t.Logf("%.1f allocations a second by Prometheus, %.1f by the workload, over %.1f s", rate, truth, last[0]-first[0])
	if math.Abs(rate/truth-1) > 0.05 {
		t.Errorf("Prometheus computes %.1f allocations a second, the workload made %.1f", rate, truth)
	}
	if up := query(t, prometheus, `memtrace_target_up[5m]`); len(up) == 0 || up[len(up)-1][1] != 1 {
		t.Errorf("target_up: %v", up)
	}
}

// startPrometheus runs Debian's Prometheus, which scrapes the address every second.
func startPrometheus(t *testing.T, scraped string) string {
	t.Helper()
	directory := t.TempDir()
	config := fmt.Sprintf("scrape_configs: [{job_name: memtrace, scrape_interval: 1s, static_configs: [{targets: [%q]}]}]\n", scraped)
	path := filepath.Join(directory, "prometheus.yml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	command := exec.Command("prometheus", "--config.file", path, "--storage.tsdb.path", filepath.Join(directory, "data"), "--web.listen-address", address)
	if err := command.Start(); err != nil {
		t.Fatalf("start prometheus: %v", err)
	}
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	eventually(t, "Prometheus answers", func() bool { return get(t, "http://"+address+"/-/ready") != "" })
	return "http://" + address
}

// query returns the samples (time, value) of the only series that an instant query of a
// range vector yields.
func query(t *testing.T, prometheus, expression string) [][2]float64 {
	t.Helper()
	var answer struct {
		Data struct {
			Result []struct{ Values [][2]any }
		}
	}
	if err := json.Unmarshal([]byte(get(t, prometheus+"/api/v1/query?query="+url.QueryEscape(expression))), &answer); err != nil {
		return nil
	}
	if len(answer.Data.Result) != 1 {
		return nil
	}
	var samples [][2]float64
	for _, value := range answer.Data.Result[0].Values {
		at, _ := value[0].(float64)
		text, _ := value[1].(string)
		number, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, [2]float64{at, number})
	}
	return samples
}

// TestServePages asks for every page, and for promtool's opinion on the metrics.
func TestServePages(t *testing.T) {
	pid, _ := churn(t)
	address := "http://" + serve(t, "--pid", strconv.Itoa(pid), "--every", "1s", "--probes", "alloc,arena")
	eventually(t, "the process is traced", func() bool { return strings.Contains(get(t, address+"/metrics"), "memtrace_allocs_total") })
	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = strings.NewReader(get(t, address+"/metrics"))
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
	for path, wanted := range map[string]string{
		"/": "flame graph", "/-/healthy": "healthy", "/api/recording": `"memtrace/1"`, "/flamegraph": "<svg",
		"/api/recording?pid=" + strconv.Itoa(pid): `"memtrace/1"`,
	} {
		if body := get(t, address+path); !strings.Contains(body, wanted) {
			t.Errorf("%s answers %.80q, which lacks %q", path, body, wanted)
		}
	}
	for _, path := range []string{"/api/recording?pid=1", "/nothing", "/flamegraph?measure=none"} {
		if body := get(t, address+path); body != "" {
			t.Errorf("%s answers %.80q", path, body)
		}
	}
}

// TestServeLeaksNothing scrapes a thousand times while processes come and go: descriptors
// and goroutines are as many as before.
func TestServeLeaksNothing(t *testing.T) {
	program := workload.Build(t, "churn.c")
	name := "leak" + strconv.Itoa(os.Getpid()%1000000)
	renamed := filepath.Join(t.TempDir(), name)
	if err := os.Rename(program, renamed); err != nil {
		t.Fatal(err)
	}
	address := "http://" + serve(t, "--comm", name, "--every", "1s", "--probes", "alloc,arena")
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	turn := func() {
		var running []*exec.Cmd
		for range 5 {
			command := exec.Command(renamed)
			stdin, err := command.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer stdin.Close()
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			running = append(running, command)
		}
		eventually(t, "a process is traced", func() bool { return strings.Contains(get(t, address+"/metrics"), "memtrace_target_up") })
		for range 50 {
			get(t, address+"/metrics")
		}
		for _, command := range running {
			command.Process.Kill()
			command.Wait()
		}
		eventually(t, "no process is traced", func() bool { return !strings.Contains(get(t, address+"/metrics"), "memtrace_target_up") })
	}
	turn()
	before := descriptors()
	for range 4 {
		turn()
	}
	http.DefaultClient.CloseIdleConnections()
	eventually(t, fmt.Sprintf("descriptors are back at %d", before), func() bool { return descriptors() <= before+2 })
}
