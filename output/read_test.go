package output

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"memtrace/tracer/recording"
)

// fileOf returns the bytes of a file of testdata.
func fileOf(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// recordingOf reads a recording of testdata: pollloop.json.gz and its fellow are traces of
// the workload of that name, for six seconds, exact; the fellow's glibc had one arena.
func recordingOf(t testing.TB, name string) *recording.Recording {
	t.Helper()
	rec, err := Read(bytes.NewReader(fileOf(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// plainOf returns a compressed file's contents.
func plainOf(t testing.TB, name string) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(fileOf(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func TestReadGivesBackWhatWasWritten(t *testing.T) {
	want := recordingOf(t, "pollloop.json.gz")
	for _, format := range []Format{{Write: JSON}, {Write: JSONGzip}} {
		var file bytes.Buffer
		if err := format.Write(&file, want, Options{}); err != nil {
			t.Fatal(err)
		}
		got, err := Read(&file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestReadNewerAndOlder(t *testing.T) {
	for _, file := range []string{
		`{"schema":"memtrace/1","target":{"pid":7,"mood":"fine"},"wholly_new":{"a":[1,{"b":2}]},"session":{"duration_ns":5}}`,
		`{"wholly_new":[{"schema":"other"}],"target":{"pid":7},"schema":"memtrace/1"}`,
		`{"schema":"memtrace/1","target":{"pid":7}}`,
	} {
		rec, err := Read(strings.NewReader(file))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if rec.Target.PID != 7 {
			t.Errorf("%s: read pid %d", file, rec.Target.PID)
		}
		if err := Text(io.Discard, rec, Options{}); err != nil {
			t.Error(err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	whole, compressed := plainOf(t, "pollloop.json.gz"), fileOf(t, "pollloop.json.gz")
	spoilt := bytes.Clone(compressed)
	spoilt[len(spoilt)/2] ^= 0x55
	for _, c := range []struct {
		name string
		file []byte
		word string
	}{
		{"empty", nil, "empty"},
		{"cut short", whole[:len(whole)-100], "cut short"},
		{"cut in the head", whole[:30], "cut short"},
		{"compressed, cut short", compressed[:len(compressed)/2], "cut short"},
		{"compressed, two bytes", compressed[:2], "cut short"},
		{"compressed, spoilt", spoilt, "damaged"},
		{"two in one", append(bytes.Clone(whole), whole...), "something follows"},
		{"an array", []byte(`[{"schema":"memtrace/1"}]`), "not a recording"},
		{"a program", []byte("\x7fELF\x02\x01\x01"), "not a recording"},
		{"another JSON file", []byte(`{"version": 2}`), "not a recording"},
		{"foreign schema", []byte(`{"schema":"stranger/9"}`), "stranger/9"},
		{"a later schema", []byte(`{"schema":"memtrace/2"}`), "memtrace/2"},
		{"a soak", []byte(`{"schema":"memtrace-soak/1"}`), "soak"},
		{"schema no text", []byte(`{"schema":{"memtrace/1":1}}`), "not a recording"},
		{"a string for a number", []byte(`{"schema":"memtrace/1","target":{"pid":"seven"}}`), "target.pid"},
		{"a negative count", []byte(`{"schema":"memtrace/1","losses":{"stacks_lost":-1}}`), "losses.stacks_lost"},
		{"too deep", []byte(`{"schema":"memtrace/1","x":` + strings.Repeat("[", 20000)), "damaged"},
		{"rubbish behind", append(bytes.Clone(whole), "}}"...), "damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(bytes.NewReader(c.file))
			if err == nil {
				t.Fatal("accepted")
			}
			if text := err.Error(); !strings.Contains(text, c.word) || strings.Contains(text, "\n") || len(text) > 200 {
				t.Errorf("%q lacks %q, or is not one short line", text, c.word)
			}
		})
	}
}

// A small compressed file must not fill the memory.
func TestReadBoundsBombs(t *testing.T) {
	var file bytes.Buffer
	compressed := gzip.NewWriter(&file)
	io.WriteString(compressed, `{"schema":"memtrace/1","notes_of_a_stranger":[`)
	io.WriteString(compressed, strings.Repeat("{},", mostObjects))
	compressed.Close()
	if _, err := Read(&file); err == nil || !strings.Contains(err.Error(), "parts") {
		t.Errorf("many objects: got %v", err)
	}
	n, err := io.Copy(io.Discard, &bounded{r: endless{}})
	if err != errTooLong || n > longestRecording {
		t.Errorf("endless content: read %d bytes, then %v", n, err)
	}
}

// endless is a file without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func FuzzRead(f *testing.F) {
	small := recordingOf(f, "pollloop.json.gz")
	small.Allocation.Sites, small.Allocation.Threads = small.Allocation.Sites[:1], small.Allocation.Threads[:1]
	small.Allocation.Sizes, small.Allocation.Series = small.Allocation.Sizes[:1], small.Allocation.Series[:1]
	small.Heap.Arenas, small.Scheduling.Threads, small.HeapBefore = small.Heap.Arenas[:1], small.Scheduling.Threads[:1], nil
	for _, format := range []Format{{Write: JSON}, {Write: JSONGzip}} {
		var seed bytes.Buffer
		if err := format.Write(&seed, small, Options{}); err != nil {
			f.Fatal(err)
		}
		f.Add(seed.Bytes())
		f.Add(seed.Bytes()[:seed.Len()/2])
	}
	f.Add([]byte(`{"schema":"memtrace/1","locks":{"locks":[{"kind":"mutex"}]},"arenas":{},"rounds":{},"mmap":{},"heap":{},"scheduling":{"threads":[{}]}}`))
	f.Add([]byte(`{"schema":"memtrace/1","session":{"duration_ns":-9223372036854775808},"allocation":{"sites":[{"bytes_per_round":1e308,"stack":[{}]}]}}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		rec, err := Read(bytes.NewReader(file))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		if err := Text(io.Discard, rec, Options{}); err != nil {
			t.Error(err)
		}
	})
}
