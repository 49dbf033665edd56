package main

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/workload"
	"memtrace/tracer/recording"
)

// realProgram is a program of the distribution, and something for it to do.
type realProgram struct {
	name    string
	command []string
	// talk, where there is one, is run beside the program and makes it end.
	talk func(t *testing.T, directory string)
}

func realPrograms(t *testing.T, directory string) []realProgram {
	t.Helper()
	source := filepath.Join(directory, "hello.c")
	if err := os.WriteFile(source, []byte("int puts(const char *);\nint main(void) { return puts(\"hello\"); }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	compiler, err := exec.Command("gcc", "-print-prog-name=cc1").Output()
	if err != nil {
		t.Fatalf("gcc: %v", err)
	}
	const python = `
import json, threading
def work():
    for i in range(200):
        json.loads(json.dumps({"key %d" % k: [k] * (k %% 50) for k in range(i)}))
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
`
	const sql = `CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<5000) INSERT INTO t SELECT i, hex(randomblob(i%300)) FROM n;
SELECT count(*), max(length(b)) FROM t GROUP BY a % 7;`
	socket := filepath.Join(directory, "redis.sock")
	return []realProgram{
		{"python3", []string{"/usr/bin/python3", "-c", strings.ReplaceAll(python, "%%", "%")}, nil},
		{"sqlite3", []string{"/usr/bin/sqlite3", ":memory:", sql}, nil},
		{"cc1", []string{strings.TrimSpace(string(compiler)), "-quiet", "-O2", source, "-o", filepath.Join(directory, "hello.s")}, nil},
		{"redis-server", []string{"/usr/bin/redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", directory},
			func(t *testing.T, _ string) { talkToRedis(t, socket) }},
	}
}

// talkToRedis stores, reads and expires keys, then shuts the server down.
func talkToRedis(t *testing.T, socket string) {
	workload.Eventually(t, "redis answers", func() bool {
		out, err := exec.Command("redis-cli", "-s", socket, "PING").Output()
		return err == nil && strings.TrimSpace(string(out)) == "PONG"
	})
	script := `for i = 1, 3000 do redis.call('SET', 'k' .. i, string.rep('v', i % 400)) redis.call('RPUSH', 'list', i) end
for i = 1, 3000, 3 do redis.call('DEL', 'k' .. i) end return redis.call('DBSIZE')`
	if out, err := exec.Command("redis-cli", "-s", socket, "EVAL", script, "0").CombinedOutput(); err != nil {
		t.Errorf("redis-cli: %v %s", err, out)
	}
	// The server ends without an answer.
	_ = exec.Command("redis-cli", "-s", socket, "SHUTDOWN", "NOSAVE").Run()
}

// TestRealPrograms compares the totals of an exact trace with those of a preloaded library
// that counts by itself, over the whole life of real programs.
func TestRealPrograms(t *testing.T) {
	directory := t.TempDir()
	memtrace := buildStatic(t)
	for _, program := range realPrograms(t, directory) {
		t.Run(program.name, func(t *testing.T) {
			counts := filepath.Join(directory, program.name+".counts")
			file := filepath.Join(directory, program.name+".json")
			counter := workload.Build(t, "counter.c", "-shared", "-fPIC", "-fno-builtin", "-DCOUNTER_FILE=\""+counts+"\"")
			command := exec.Command(memtrace, append([]string{"--exact", "--probes", "alloc", "--round", "none", "-q", "-f", "folded", "-o", file, "--"}, program.command...)...)
			command.Env = append(os.Environ(), "LD_PRELOAD="+counter, "PYTHONDONTWRITEBYTECODE=1")
			ended := make(chan outcome, 1)
			go func() {
				out, err := command.CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v\n%s", program.name, err, out)
				}
				ended <- outcome{}
			}()
			if program.talk != nil {
				program.talk(t, directory)
			}
			<-ended
			compareTotals(t, readCounts(t, counts), readRecording(t, file))
		})
	}
}

// compareTotals wants every number to be the same. Where the allocator keeps no headers,
// memtrace does not know free sizes.
func compareTotals(t *testing.T, want recording.AllocationTotals, rec *recording.Recording) {
	t.Helper()
	got := rec.Allocation.Totals
	if !rec.Allocation.FreeSizes {
		want.FreeBytes = got.FreeBytes
	}
	if got != want {
		t.Errorf("totals differ\nmemtrace %+v\ncounter  %+v", got, want)
	}
	l := rec.Losses
	if l.ThreadsLost+l.FailedReads+l.MissedHits > 0 {
		t.Errorf("lost: %+v", l)
	}
	t.Logf("%s: %+v", rec.Target.Allocator.Name, got)
}

// readCounts reads what counter.c has left.
func readCounts(t *testing.T, path string) recording.AllocationTotals {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil || len(content) != 7*8 {
		t.Fatalf("counts of %d bytes, %v", len(content), err)
	}
	at := func(i int) uint64 { return binary.NativeEndian.Uint64(content[8*i:]) }
	return recording.AllocationTotals{Allocs: at(0), AllocBytes: at(1), Frees: at(2), FreeBytes: at(3), Reallocs: at(4), ReallocBytes: at(5), Failed: at(6)}
}

// buildStatic builds memtrace as it is shipped, without the C library: the environment's
// LD_PRELOAD is for its command alone.
func buildStatic(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "memtrace")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}
