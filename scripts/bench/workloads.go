package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

//go:embed testdata/tight.c
var tightSource string

// workloads lists the programs, each with the work that a request asks for.
func workloads() []*workload {
	tight := func(directory string) error { return compile("tight", tightSource, directory) }
	return []*workload{
		{name: "tight loop", build: tight, command: []string{"{}/tight", "1", "20000"}, request: "go\n", done: "done"},
		{name: "eight threads", build: tight, command: []string{"{}/tight", "8", "5000"}, request: "go\n", done: "done"},
		{name: "redis", command: []string{"redis-server", "--unixsocket", "{}/redis.sock", "--port", "0", "--save", "", "--daemonize", "no"}, serve: redisRate},
		{name: "sqlite3 insert", command: []string{"sqlite3", ":memory:"}, request: sqliteRequest(), done: "done"},
		{name: "python3 JSON", command: []string{"/usr/bin/python3", "-u", "-c", pythonProgram}, request: "go\n", done: "done"},
		{name: "gcc compile", command: []string{compiler(), "-quiet", "-O2", "-o", "/dev/null", "-"}, request: compilerInput(), whole: true},
	}
}

const pythonProgram = `
import json, sys
text = json.dumps([{"id": i, "name": "name %d" % i, "tags": ["a", "b", "c"], "value": i / 7} for i in range(500)])
for line in sys.stdin:
    for _ in range(20):
        json.dumps(json.loads(text))
    print("done")
`

// sqliteRequest inserts rows into a new table.
func sqliteRequest() string {
	const rows = 2000
	var text strings.Builder
	text.WriteString("drop table if exists t; create table t(id integer primary key, name text, value real);\n")
	for i := range rows {
		fmt.Fprintf(&text, "insert into t values(%d, 'the name of row %d', %d.5);\n", i, i, i)
	}
	text.WriteString("select 'done';\n")
	return text.String()
}

// compiler is the part of gcc that compiles, so that the process that is traced does the work.
func compiler() string {
	out, err := exec.Command("gcc", "-print-prog-name=cc1").Output()
	if err != nil {
		return "cc1"
	}
	return strings.TrimSpace(string(out))
}

// compilerInput is a program of many functions.
func compilerInput() string {
	const functions = 400
	var text strings.Builder
	for i := range functions {
		fmt.Fprintf(&text, "int f%d(int *a, int n) { int s = %d; for (int i = 0; i < n; i++) { if (a[i] > s) s += a[i] * %d; else s ^= a[i] >> 3; } return s; }\n", i, i, i+3)
	}
	return text.String()
}

var requestsPerSecond = regexp.MustCompile(`([0-9.]+) requests per second`)

// redisRate has redis-benchmark ask for as long as the measurement takes, about.
func redisRate(ctx context.Context, directory string, length time.Duration) (float64, error) {
	socket := filepath.Join(directory, "redis.sock")
	if err := waitForSocket(ctx, socket); err != nil {
		return 0, err
	}
	const perSecond = 50_000
	count := strconv.Itoa(int(length.Seconds() * perSecond))
	out, err := exec.CommandContext(ctx, "redis-benchmark", "-s", socket, "-q", "-n", count, "-t", "set", "-d", "200", "-r", "10000").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("redis-benchmark: %w: %s", err, out)
	}
	found := requestsPerSecond.FindAllSubmatch(out, -1)
	if found == nil {
		return 0, fmt.Errorf("redis-benchmark told no rate: %s", out)
	}
	return strconv.ParseFloat(string(found[len(found)-1][1]), 64)
}

func waitForSocket(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		connection, err := net.Dial("unix", path)
		if err == nil {
			return connection.Close()
		}
		if !errors.Is(err, os.ErrNotExist) && ctx.Err() != nil {
			return fmt.Errorf("connect to %s: %w", path, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("connect to %s: %w", path, ctx.Err())
}
