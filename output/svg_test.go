package output

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"memtrace/tracer/recording"
)

// wellFormed reads a picture through as XML.
func wellFormed(t testing.TB, picture []byte) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(picture))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
}

func TestFlameSVG(t *testing.T) {
	for _, measure := range []string{"alloc-bytes", "lock-wait"} {
		var picture bytes.Buffer
		if err := FlameSVG(&picture, wholeRecording(t), Options{Measure: measure}); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, picture.Bytes())
		matchGolden(t, "flame_"+measure+".svg", picture.Bytes())
	}
	if err := FlameSVG(io.Discard, &recording.Recording{}, Options{}); err == nil || !strings.Contains(err.Error(), "probe was off") {
		t.Errorf("a recording without stacks: %v", err)
	}
}

func TestDiffSVG(t *testing.T) {
	var picture bytes.Buffer
	if err := DiffSVG(&picture, sampleComparison(t), Options{}); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, picture.Bytes())
	matchGolden(t, "diff.svg", picture.Bytes())
	picture.Reset()
	if err := DiffSVG(&picture, &recording.Comparison{}, Options{}); err != nil {
		t.Error(err)
	}
	wellFormed(t, picture.Bytes())
}

// Whatever the names, and however many the sites, the picture stays small and well formed.
func TestFlameSVGOfLargeAndHostileRecordings(t *testing.T) {
	var picture bytes.Buffer
	if err := FlameSVG(&picture, largeRecording(t), Options{}); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, picture.Bytes())
	if picture.Len() > 10<<20 {
		t.Errorf("%d bytes", picture.Len())
	}
}

func FuzzFlameNames(f *testing.F) {
	for _, name := range []string{"main", "]]></title><script>", "a&b<c>\"'", "\x00\x1b\xff\ufffe", "std::pair<int, char>"} {
		f.Add(name)
	}
	rec := &recording.Recording{
		Allocation: &recording.Allocation{Sites: []recording.Site{{Stack: recording.Stack{{}}, AllocBytes: 5}}, Threads: []recording.AllocationThread{{}}},
		Locks:      &recording.Locks{Locks: []recording.Lock{{}}},
	}
	f.Fuzz(func(t *testing.T, name string) {
		var picture bytes.Buffer
		if err := FlameSVG(&picture, named(rec, name), Options{}); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, picture.Bytes())
	})
}
