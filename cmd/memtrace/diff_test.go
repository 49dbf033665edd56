package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/tracer/recording"
)

// cappedRecording is sampleRecording with one arena (MALLOC_ARENA_MAX=1).
const cappedRecording = "../../output/testdata/pollloop_one_arena.json.gz"

func TestDiffOfRecordings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "diff.json")
	got := run(t, memtrace(t, "diff", sampleRecording, cappedRecording, "-o", file))
	if got.status != 0 || got.stderr != "" {
		t.Fatalf("exit status %d\n%s", got.status, got.stderr)
	}
	for _, words := range []string{"retention fell 58 %", "arenas 12 → 1: the cap works", "allocations"} {
		if !strings.Contains(got.stdout, words) {
			t.Errorf("the report lacks %q:\n%s", words, got.stdout)
		}
	}
	var c recording.Comparison
	if err := json.Unmarshal([]byte(read(t, file)), &c); err != nil {
		t.Fatal(err)
	}
	if c.Schema != recording.ComparisonSchema || len(c.Changes) == 0 || c.Warnings == nil || c.Sites == nil {
		t.Errorf("the JSON file is not whole: %+v", c)
	}
	if same := run(t, memtrace(t, "diff", sampleRecording, sampleRecording)).stdout; !strings.Contains(same, "nothing changed") || !strings.Contains(same, "same trace twice") {
		t.Errorf("a recording against itself:\n%s", same)
	}
}

// The committed memory of an incident, before and after a cap of the arenas.
func TestDiffOfSoaks(t *testing.T) {
	before, after := writeSoakFile(t, "before.jsonl", 1458), writeSoakFile(t, "after.jsonl", 610)
	both := filepath.Join(t.TempDir(), "both.jsonl")
	_, samples, _ := strings.Cut(read(t, after), "\n")
	if err := os.WriteFile(both, []byte(read(t, before)+samples), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, files := range [][]string{{before, after}, {both}} {
		got := run(t, memtrace(t, append([]string{"diff"}, files...)...))
		if got.status != 0 || !strings.Contains(got.stdout, "-58 %") || !strings.Contains(got.stdout, "committed memory fell 58 %") {
			t.Errorf("%d files: status %d\n%s%s", len(files), got.status, got.stdout, got.stderr)
		}
	}
	mixed := run(t, memtrace(t, "diff", sampleRecording, after))
	if mixed.status != 0 || !strings.Contains(mixed.stdout, "recording is held against a soak") {
		t.Errorf("a recording and a soak: status %d\n%s%s", mixed.status, mixed.stdout, mixed.stderr)
	}
}

func TestDiffOfWrongFiles(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.jsonl")
	if err := os.WriteFile(empty, []byte(`{"schema":"memtrace-soak/1"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	oneLine(t, run(t, memtrace(t, "diff")), statusUsage, "BEFORE AFTER")
	oneLine(t, run(t, memtrace(t, "diff", sampleRecording)), statusUsage, "BEFORE AFTER")
	oneLine(t, run(t, memtrace(t, "diff", sampleRecording, "/no/such/file")), statusFailed, "/no/such/file")
	oneLine(t, run(t, memtrace(t, "diff", sampleRecording, empty)), statusFailed, "no sample yet")
	oneLine(t, run(t, memtrace(t, "diff", empty)), statusFailed, "second file")
	oneLine(t, run(t, memtrace(t, "diff", empty, empty, "-f", "folded")), statusUsage, "folded")
	oneLine(t, run(t, memtrace(t, "diff", empty, empty, "-o", "x.folded")), statusUsage, "x.folded")
	oneLine(t, run(t, memtrace(t, "diff", empty, empty, "--top", "0")), statusUsage, "--top")
}
