package output

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"memtrace/tracer/recording"
)

// profileOf writes a recording as a profile and reads it back as pprof does.
func profileOf(t *testing.T, rec *recording.Recording, o Options) *profile.Profile {
	t.Helper()
	var file bytes.Buffer
	if err := Pprof(&file, rec, o); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(&file)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sumOf sums one sample type.
func sumOf(t *testing.T, p *profile.Profile, name string) uint64 {
	t.Helper()
	for i, kind := range p.SampleType {
		if kind.Type != name {
			continue
		}
		var sum uint64
		for _, s := range p.Sample {
			sum += uint64(s.Value[i])
		}
		return sum
	}
	t.Fatalf("the profile has no %s", name)
	return 0
}

func TestPprofHoldsTheTotals(t *testing.T) {
	rec := wholeRecording(t)
	p := profileOf(t, rec, Options{})
	var live, waited uint64
	for _, s := range rec.Allocation.Sites {
		live += s.LiveBytes
	}
	for _, w := range rec.Locks.Locks[0].Waiters {
		waited += uint64(w.WaitNS)
	}
	for name, want := range map[string]uint64{
		"alloc_objects": rec.Allocation.Totals.Allocs, "alloc_space": rec.Allocation.Totals.AllocBytes,
		"inuse_space": live, "delay": waited, "arenas_created": 11,
	} {
		if got := sumOf(t, p, name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if p.DefaultSampleType != "alloc_space" || p.DurationNanos != rec.Session.DurationNS {
		t.Errorf("default type %q, duration %d", p.DefaultSampleType, p.DurationNanos)
	}
	if got := profileOf(t, rec, Options{Measure: "lock-wait"}).DefaultSampleType; got != "delay" {
		t.Errorf("--measure lock-wait shows %q first", got)
	}
}

// The program itself must read the profile without a warning.
func TestPprofReadsIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.pb.gz")
	var content bytes.Buffer
	if err := Pprof(&content, wholeRecording(t), Options{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, view := range []string{"-top", "-traces", "-tags", "-peek=fetch_page"} {
		command := exec.Command("go", "tool", "pprof", view, file)
		var stdout, stderr bytes.Buffer
		command.Stdout, command.Stderr = &stdout, &stderr
		if err := command.Run(); err != nil || stderr.Len() > 0 {
			t.Errorf("%s: %v\n%s", view, err, stderr.String())
		}
		if view == "-top" && (!strings.Contains(stdout.String(), "fetch_page") || !strings.Contains(stdout.String(), "File: pollloop")) {
			t.Errorf("the view lacks the site or the program:\n%s", stdout.String())
		}
	}
}

// Odd recordings make valid profiles.
func TestPprofOfOddRecordings(t *testing.T) {
	for _, rec := range []*recording.Recording{{}, named(&recording.Recording{
		Allocation: &recording.Allocation{Sites: []recording.Site{{Stack: recording.Stack{{}}, AllocBytes: 1 << 63, Allocs: 0}}, Threads: []recording.AllocationThread{{}}},
		Locks:      &recording.Locks{Locks: []recording.Lock{{}}},
	}, "\x1b\xff;\n\"")} {
		if err := profileOf(t, rec, Options{}).CheckValid(); err != nil {
			t.Error(err)
		}
	}
}

// pprof shows the source with the bytes at its lines.
func TestPprofListsTheSource(t *testing.T) {
	directory := t.TempDir()
	source, file := filepath.Join(directory, "queue.c"), filepath.Join(directory, "run.pb.gz")
	if err := os.WriteFile(source, []byte("void *grow(void)\n{\n\treturn malloc(4096);\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	rec := &recording.Recording{Target: recording.Target{Exe: "/usr/bin/queued"}, Allocation: &recording.Allocation{Sites: []recording.Site{
		{Entry: "malloc", Allocs: 3, AllocBytes: 12288, Stack: recording.Stack{{Function: "grow", File: source, Line: 3, Module: "/usr/bin/queued", Address: 0x401003}}},
	}}}
	var content bytes.Buffer
	if err := Pprof(&content, rec, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "tool", "pprof", "-list=grow", file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "12kB       12kB (flat, cum)   100% of Total") || !strings.Contains(string(out), "return malloc(4096);") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Modules are mappings with their build ids, frames inlined into one another share a
// location, samples carry the thread and the module.
func TestPprofOfARealTrace(t *testing.T) {
	p := profileOf(t, recordingOf(t, realTrace), Options{})
	if m := p.Mapping[0]; m.File != "/srv/pollloop/pollloop" || len(m.BuildID) != 40 || m.Start >= m.Limit {
		t.Errorf("the first mapping is %+v", m)
	}
	inlined := 0
	for _, location := range p.Location {
		if len(location.Line) > 1 {
			inlined++
		}
		if m := location.Mapping; m == nil || location.Address < m.Start || location.Address >= m.Limit {
			t.Errorf("%#x lies outside its mapping", location.Address)
		}
	}
	if inlined == 0 {
		t.Error("no frame is inlined into another")
	}
	threads := map[string]bool{}
	for _, sample := range p.Sample {
		for _, name := range sample.Label["thread"] {
			threads[name] = true
		}
		if len(sample.Label["module"]) != 1 {
			t.Errorf("a sample has the labels %v", sample.Label)
		}
	}
	for _, name := range []string{"scorer", "store", "ingest", "worker-0"} {
		if !threads[name] {
			t.Errorf("no sample is of the thread %s; there are %v", name, threads)
		}
	}
}
