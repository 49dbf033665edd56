package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"memtrace/tracer/finding/trend"
	"memtrace/tracer/recording"
)

// TestMain lets the test program stand in for a soak that is killed (see TestKilled).
func TestMain(m *testing.M) {
	if path := os.Getenv("SOAK_TEST_WRITE"); path != "" {
		writeForever(path)
	}
	os.Exit(m.Run())
}

// writeForever appends samples with rising numbers as fast as it can.
func writeForever(path string) {
	file, err := Open(path, recording.SoakHeader{Schema: recording.SoakSchema})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		if err := file.Append(recording.Sample{Time: time.Now(), Threads: i, Note: strings.Repeat("x", i%3000)}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// TestKilled kills a writer of one and the same file a hundred times: after each time the
// file reads, and no finished sample before the last is missing.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "soak.jsonl")
	for kill := range 100 {
		command := exec.Command(os.Args[0])
		command.Env = append(os.Environ(), "SOAK_TEST_WRITE="+path)
		command.Stderr = os.Stderr
		before := fileSize(path)
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(30 * time.Second); fileSize(path) < before+int64(500+kill*37); {
			if time.Now().After(deadline) {
				t.Fatal("the writer writes nothing")
			}
			time.Sleep(time.Millisecond)
		}
		command.Process.Kill()
		command.Wait()
		soak, err := readPath(path)
		if err != nil {
			t.Fatalf("after kill %d: %v", kill, err)
		}
		for i := 1; i < len(soak.Samples); i++ {
			if got, last := soak.Samples[i].Threads, soak.Samples[i-1].Threads; got != 0 && got != last+1 {
				t.Fatalf("after kill %d: sample %d follows %d", kill, got, last)
			}
		}
	}
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// TestFullDisk fills a small file system: the samples that find no room are kept and
// written when there is room again.
func TestFullDisk(t *testing.T) {
	directory := t.TempDir()
	if err := syscall.Mount("tmpfs", directory, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatalf("mount a small file system: %v (run as root)", err)
	}
	t.Cleanup(func() { syscall.Unmount(directory, 0) })
	ballast := filepath.Join(directory, "ballast")
	w := &watch{Options: Options{Output: filepath.Join(directory, "soak.jsonl")}}
	w.Header = recording.SoakHeader{Schema: recording.SoakSchema}
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	defer w.file.Close()
	if err := os.WriteFile(ballast, make([]byte, 56<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	var failed error
	for i := range 40 {
		w.pending = append(w.pending, recording.Sample{Time: time.Now(), Threads: i, Note: strings.Repeat("n", 400)})
		failed = errors.Join(failed, w.flush())
	}
	if !errors.Is(failed, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", failed)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := w.flush(); err != nil {
		t.Fatal(err)
	}
	soak, err := readPath(w.Output)
	if err != nil {
		t.Fatal(err)
	}
	if len(soak.Samples) != 40 {
		t.Errorf("%d samples of 40: %v", len(soak.Samples), soak.Notes)
	}
}

// TestRestart ends the watched program and starts it again: the second start is noted, and
// both are judged apart.
func TestRestart(t *testing.T) {
	argument := fmt.Sprintf("3%d", os.Getpid()) // tells our sleep from every other
	start := func() *exec.Cmd {
		command := exec.Command("sleep", argument)
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		return command
	}
	first := start()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var second *exec.Cmd
	defer func() {
		if second != nil {
			second.Process.Kill()
			second.Wait()
		}
	}()
	path := filepath.Join(t.TempDir(), "soak.jsonl")
	seen := 0
	soak, err := Watch(ctx, Options{
		PID: first.Process.Pid, Every: 5 * time.Millisecond, For: time.Minute, Output: path,
		Header: recording.SoakHeader{Schema: recording.SoakSchema},
		Progress: func(sample recording.Sample, err error) {
			switch {
			case seen == 3 && second == nil:
				first.Process.Kill()
				first.Wait()
				second = start()
			case second != nil && sample.PID == second.Process.Pid && seen > 6:
				cancel()
			}
			if err == nil {
				seen++
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() == nil {
		t.Fatal("the second start was not seen within a minute")
	}
	report := Judge(soak)
	if len(report.Starts) != 2 || report.Starts[1].PID != second.Process.Pid {
		t.Fatalf("starts: %+v", report.Starts)
	}
	again, err := Watch(context.Background(), Options{
		PID: second.Process.Pid, Every: 5 * time.Millisecond, For: 12 * time.Millisecond, Output: path,
		Header: recording.SoakHeader{Schema: recording.SoakSchema},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(Judge(again).Starts); n != 2 || len(again.Samples) <= len(soak.Samples) {
		t.Errorf("the same file again: %d starts, %d samples after %d", n, len(again.Samples), len(soak.Samples))
	}
}

// TestNotes tells a suspended machine from a clock that was set.
func TestNotes(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := &watch{last: &recording.Sample{PID: 7, StartTicks: 1, Time: at, BootNS: 1e9, MonotonicNS: 1e9}}
	suspended := recording.Sample{PID: 7, StartTicks: 1, Time: at.Add(time.Hour), BootNS: 1e9 + int64(time.Hour), MonotonicNS: 31e9}
	w.note(&suspended)
	if suspended.Start || !strings.Contains(suspended.Note, "suspended for 59m30s") || strings.Contains(suspended.Note, "clock") {
		t.Errorf("suspended: %q", suspended.Note)
	}
	stepped := recording.Sample{PID: 7, StartTicks: 1, Time: at.Add(-time.Hour), BootNS: 31e9, MonotonicNS: 31e9}
	w.note(&stepped)
	if stepped.Start || !strings.Contains(stepped.Note, "clock was set by -1h0m30s") {
		t.Errorf("stepped: %q", stepped.Note)
	}
	rebooted := recording.Sample{PID: 7, StartTicks: 1, Time: at.Add(time.Hour), BootNS: 5e8, MonotonicNS: 5e8}
	if w.note(&rebooted); !rebooted.Start {
		t.Error("after a reboot the same numbers are another process")
	}
}

// fabricate makes a soak whose committed and live bytes follow two functions of the hour.
func fabricate(samples int, every time.Duration, committed, live func(hours float64) float64) *recording.Soak {
	soak := &recording.Soak{}
	for i := range samples {
		at := time.Duration(i) * every
		s := recording.Sample{Time: time.Unix(1e9, 0).Add(at), BootNS: int64(at) + 1e9, MonotonicNS: int64(at) + 1e9, PID: 1, Heap: true}
		s.CommittedBytes, s.LiveBytes = uint64(committed(at.Hours())), uint64(live(at.Hours()))
		s.Cgroup.MaxBytes, s.Cgroup.CurrentBytes = 2<<30, s.CommittedBytes
		soak.Samples = append(soak.Samples, s)
	}
	return soak
}

// TestVerdicts keeps live and committed memory apart.
func TestVerdicts(t *testing.T) {
	const mib = 1 << 20
	flat := func(float64) float64 { return 200 * mib }
	climb := func(h float64) float64 { return 500*mib + 100*mib*h + 3*mib*math.Sin(h*300) }
	s := Judge(fabricate(360, time.Minute, climb, flat)).Starts[0]
	if s.Committed.Kind != trend.Leak || s.Live.Kind != trend.Plateau || !strings.Contains(s.Next, "the allocator holds") {
		t.Errorf("climbing over flat: %s / %s: %s", s.Committed.Kind, s.Live.Kind, s.Next)
	}
	if left := s.LimitIn.Hours(); math.Abs(left-9.5) > 0.5 {
		t.Errorf("the limit in %.1f hours, want 9.5 (2048 MiB less 1100, at 100 an hour)", left)
	}
	s = Judge(fabricate(360, time.Minute, climb, climb)).Starts[0]
	if s.Live.Kind != trend.Leak || !strings.Contains(s.Next, "own live memory") {
		t.Errorf("both climbing: %s: %s", s.Live.Kind, s.Next)
	}
	s = Judge(fabricate(360, time.Minute, flat, flat)).Starts[0]
	if s.Committed.Kind != trend.Plateau || s.LimitIn != 0 {
		t.Errorf("both flat: %s", s.Committed.Kind)
	}
	step := func(h float64) float64 {
		if h > 4 {
			return 700 * mib
		}
		return 500 * mib
	}
	soak := fabricate(360, time.Minute, step, flat)
	for i := range soak.Samples {
		if soak.Samples[i].Threads = 8; i > 240 {
			soak.Samples[i].Threads = 40
		}
	}
	s = Judge(soak).Starts[0]
	if s.Committed.Kind != trend.Steps || len(s.Events) != 1 || !strings.Contains(s.Events[0].What, "threads went from 8 to 40") {
		t.Errorf("a step: %s, %+v", s.Committed.Kind, s.Events)
	}
}

// TestForeignFiles refuses what is no soak file, and skips what is torn.
func TestForeignFiles(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "foreign": "hello\n", "recording": `{"schema":"memtrace/1"}` + "\n", "newer": `{"schema":"memtrace-soak/9"}` + "\n",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	header, _ := json.Marshal(recording.SoakHeader{Schema: recording.SoakSchema})
	sample, _ := json.Marshal(recording.Sample{Time: time.Now()})
	torn := bytes.Join([][]byte{header, sample, sample[:40], sample, sample[:20]}, []byte("\n"))
	soak, err := Read(bytes.NewReader(torn))
	if err != nil || len(soak.Samples) != 2 || len(soak.Notes) != 1 {
		t.Errorf("torn: %v, %+v", err, soak)
	}
}

// FuzzRead feeds the reader anything.
func FuzzRead(f *testing.F) {
	header, _ := json.Marshal(recording.SoakHeader{Schema: recording.SoakSchema})
	sample, _ := json.Marshal(recording.Sample{Time: time.Now(), CommittedBytes: 1 << 60, BootNS: -5})
	f.Add(bytes.Join([][]byte{header, sample, sample[:40], []byte("{}"), sample}, []byte("\n")))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		soak, err := Read(bytes.NewReader(data))
		if err == nil {
			Judge(soak)
		}
	})
}
