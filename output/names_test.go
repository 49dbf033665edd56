package output

import (
	"bytes"
	"strings"
	"testing"

	"memtrace/tracer/recording"
)

// oddNames are the shapes of names that break formats.
func oddNames() []string {
	return []string{
		"main", "a b", "a;b;c 12", "line\nbreak\r", `"quoted" \ 'twice'`, "]]></title></script><b>", "\x00\x1b[31m\x7f", "\xff\xfe", "\ufffe\u2028\u202e",
		"{{.}}", "тест 模板 🦀", "std::map<int, std::vector<char>>", strings.Repeat("tuple<int, ", 200) + "end",
	}
}

// nameless is a recording whose one site, lock and thread take any name.
func nameless() *recording.Recording {
	return &recording.Recording{
		Allocation: &recording.Allocation{Sites: []recording.Site{{Stack: recording.Stack{{}}, Allocs: 3, AllocBytes: 5}}, Threads: []recording.AllocationThread{{TID: 7}}},
		Locks:      &recording.Locks{Locks: []recording.Lock{{}}},
		Rounds:     &recording.Rounds{Series: []recording.Round{{TID: 7, DurationNS: 10}}},
	}
}

func FuzzFoldedNames(f *testing.F) {
	for _, name := range oddNames() {
		f.Add(name, "malloc")
	}
	f.Fuzz(func(t *testing.T, name, entry string) {
		rec := named(nameless(), name)
		rec.Allocation.Sites[0].Entry = entry
		rec.Allocation.Sites[0].Stack = append(rec.Allocation.Sites[0].Stack, recording.Frame{Function: "main"})
		var file bytes.Buffer
		if err := Folded(&file, rec, Options{}); err != nil {
			t.Fatal(err)
		}
		line, ended := strings.CutSuffix(file.String(), " 5\n")
		frames := strings.Split(line, ";")
		want := 3
		if entry == "" {
			want--
		}
		if !ended || strings.ContainsAny(line, "\n\r\x00\x1b") || len(frames) != want || frames[0] != "main" || strings.ToValidUTF8(line, "") != line {
			t.Errorf("%q of %q makes %q", name, entry, file.String())
		}
	})
}

func FuzzPprofNames(f *testing.F) {
	for _, name := range oddNames() {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		p := profileOf(t, named(nameless(), name), Options{})
		if err := p.CheckValid(); err != nil {
			t.Fatal(err)
		}
		if got := sumOf(t, p, "alloc_space"); got != 5 {
			t.Errorf("%q leaves %d bytes of 5", name, got)
		}
		for _, function := range p.Function {
			if name != "" && function.Name != printable(name) {
				t.Errorf("%q is called %q", name, function.Name)
			}
		}
	})
}

func FuzzTimelineNames(f *testing.F) {
	for _, name := range oddNames() {
		f.Add(name, int64(5), int64(7))
	}
	f.Fuzz(func(t *testing.T, name string, start, duration int64) {
		rec := named(nameless(), name)
		rec.Rounds.Series[0] = recording.Round{TID: 7, StartNS: start, DurationNS: duration}
		rec.Locks.Chains = []recording.Chain{{Name: name, StartNS: start, DurationNS: duration, TIDs: []int{7, 8, 9}, Threads: []string{name}, TimesNS: []int64{start, duration, 5}}}
		for _, event := range timelineOf(t, rec) {
			if event.At < 0 || event.Duration != nil && *event.Duration < 0 {
				t.Errorf("%+v", event)
			}
		}
	})
}
