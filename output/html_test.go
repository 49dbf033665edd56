package output

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"memtrace/tracer/recording"
)

// wholeRecording is a trace with every section: a real one, with the locks, arenas and
// rounds of a service beside it.
func wholeRecording(t testing.TB) *recording.Recording {
	rec := recordingOf(t, "pollloop.json.gz")
	stack := func(names ...string) recording.Stack {
		var s recording.Stack
		for i, name := range names {
			s = append(s, recording.Frame{Function: name, File: "/src/ledger.c", Line: 40 + i, Module: "/usr/bin/ledgerd"})
		}
		return s
	}
	second := int64(1e9)
	rec.Findings = []recording.Finding{
		{Kind: "lock-convoy", Severity: recording.High, Subject: "journal_lock", Summary: "8 threads hand journal_lock on in lockstep: 41,000 handoffs in 6 s, held for 2 µs each", Next: "shorten the queue: batch the writes, or split the lock", Evidence: map[string]float64{"handoffs": 41000, "threads": 8}},
		{Kind: "arena-sprawl", Severity: recording.Medium, Subject: "process", Summary: "454 KiB of free and resident memory lie in 12 arenas", Next: "set MALLOC_ARENA_MAX=2 and compare", Evidence: map[string]float64{"arenas": 12}},
		{Kind: "plateau", Severity: recording.Info, Subject: "process", Summary: "live memory does not grow"},
	}
	rec.Locks = &recording.Locks{
		Locks: []recording.Lock{
			{Address: 0x55aa10, Kind: "mutex", Name: "journal_lock", Waits: 41_200, WaitNS: recording.WaitTimes{Total: 31 * second, P50: 700_000, P99: 2_100_000, Max: 9_000_000}, Handoffs: 41_000,
				HandoffNS: recording.HandoffTimes{P50: 52_000, P99: 300_000}, Hold: recording.Hold{P50: 2_000, P99: 9_000, Count: 41_000}, QueueMean: 5.2, QueueMax: 7, ConvoyFraction: 0.97,
				Threads: []recording.LockThread{{TID: 11, Name: "worker-0", Waits: 9000, WaitNS: 8 * second}, {TID: 12, Name: "worker-1", Waits: 9000, WaitNS: 7 * second}},
				Waiters: []recording.LockWaiter{{Stack: stack("__lll_lock_wait", "pthread_mutex_lock", "append_entry", "serve"), Waits: 41_200, WaitNS: 31 * second}},
				Wakers:  []recording.LockWaker{{Stack: stack("__lll_lock_wake", "pthread_mutex_unlock", "append_entry", "serve"), Wakes: 41_000}}},
			{Address: 0x55aa90, Kind: "condvar", Name: "queue_ready", Waits: 300, WaitNS: recording.WaitTimes{Total: 40 * second, P50: 10_000_000}},
		},
		Chains: []recording.Chain{{Lock: 0x55aa10, Name: "journal_lock", Length: 412, StartNS: 1_000_000, TIDs: []int{11, 12, 13, 14}, TimesNS: []int64{1_000_000, 20_000_000, 50_000_000, 60_000_000}, Threads: []string{"worker-0", "worker-1", "worker-2", "worker-3"}, DurationNS: 90_000_000}},
	}
	rec.Arenas = &recording.Arenas{Limit: 16, Method: "uprobes"}
	for i := range int64(11) {
		rec.Arenas.Created = append(rec.Arenas.Created, recording.ArenaEvent{TimeNS: i * i * second / 25, Arena: recording.Address(0x7f0000000030 + i<<26), TID: int(11 + i), Thread: fmt.Sprintf("worker-%d", i), Cause: "first-allocation", Stack: stack("arena_get2", "malloc", "serve")})
	}
	rec.Arenas.Trims = []recording.Trim{{TimeNS: 4 * second, Thread: "main", DurationNS: 200_000_000, RSSBeforeBytes: 9 << 20, RSSAfterBytes: 4 << 20}}
	rec.Rounds = &recording.Rounds{Spec: "auto", Count: 1200, PerThread: true, Bytes: recording.Distribution{Mean: 91_000, P50: 90_000, P99: 140_000, Max: 300_000},
		Allocs: recording.Distribution{Mean: 810, P50: 800, P99: 1000, Max: 2000}, DurationNS: recording.Distribution{Mean: 1.5e6, P50: 1.4e6, P99: 4e6, Max: 2e7}}
	rec.Rounds.Threads = []recording.RoundThread{{TID: 15414, Name: "scorer", Count: 1200, Wait: "poll", Allocs: rec.Rounds.Allocs, Bytes: rec.Rounds.Bytes,
		DurationNS: rec.Rounds.DurationNS, CPUNS: rec.Rounds.DurationNS, PeriodNS: recording.Distribution{P50: 5e7}, Timeouts: 1100}}
	for i := range uint64(600) {
		rec.Rounds.Series = append(rec.Rounds.Series, recording.Round{Index: i * 2, TID: 15414, StartNS: int64(i) * second / 100, DurationNS: 1_500_000, AllocBytes: 90_000 + i*i%50_000, Allocs: 800})
	}
	return rec
}

func pageOf(t testing.TB, rec *recording.Recording) string {
	t.Helper()
	var page bytes.Buffer
	if err := HTML(&page, rec, Options{}); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

// textOf returns what a page shows, its tags removed.
func textOf(page string) string {
	body := page[strings.Index(page, "<body>"):strings.LastIndex(page, "<script>")]
	return html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(body, " "))
}

// The page holds each figure of the text report's tables.
func TestHTMLShowsTheFiguresOfTheTextReport(t *testing.T) {
	rec := wholeRecording(t)
	shown := textOf(pageOf(t, rec))
	for _, section := range textSections() {
		for _, b := range blocksOf(rec, DefaultTop, section) {
			for _, row := range b.Rows {
				for _, cell := range row {
					words := strings.TrimLeft(cell.Text, "█▒▓=-·▏ ")
					if !strings.Contains(shown, words) {
						t.Errorf("the page lacks %q", words)
					}
				}
			}
		}
	}
	for _, words := range []string{"lock-convoy", "journal_lock", "worker-0 → worker-1", "Next: set MALLOC_ARENA_MAX=2", "fetch_page", "scorer: a round every 50.0 ms", "relay of 412 handoffs"} {
		if !strings.Contains(strings.Join(strings.Fields(shown), " "), words) {
			t.Errorf("the page lacks %q", words)
		}
	}
}

// The page works from a file, without a network.
func TestHTMLNeedsNoNetwork(t *testing.T) {
	page := pageOf(t, wholeRecording(t))
	for _, reference := range []string{"http:", "https:", "src=", "@import", "<link", "url("} {
		if strings.Contains(page, reference) {
			t.Errorf("the page refers to something outside: %q", reference)
		}
	}
}

func TestHTMLEscapesHostileNames(t *testing.T) {
	const evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'\x1b[31m\xff\u202e"
	rec := wholeRecording(t)
	rec.Target.Command, rec.Session.Kernel, rec.Session.Round, rec.Rounds.Spec = evil, evil, evil, evil
	rec.Notes, rec.Findings[0].Summary, rec.Findings[0].Kind = []string{evil}, evil, evil
	rec.Findings[0].Evidence[evil] = 1
	rec.Allocation.Threads[0].Name, rec.Allocation.Sites[0].Entry = evil, evil
	rec.Allocation.Sites[0].Stack[0].Function, rec.Allocation.Sites[1].Stack[0].File = evil, evil
	rec.Locks.Locks[0].Name, rec.Locks.Locks[0].Kind, rec.Locks.Chains[0].Threads[0] = evil, evil, evil
	rec.Arenas.Trims[0].Thread = evil
	page := pageOf(t, rec)
	if strings.Count(page, "<script") != strings.Count(pageOf(t, wholeRecording(t)), "<script") || strings.Contains(page, "<img") {
		t.Error("a name of the target became markup")
	}
	for _, bad := range []string{"\x1b", "\xff", "\u202e"} {
		if strings.Contains(page, bad) {
			t.Errorf("%q reached the page", bad)
		}
	}
}

// largeRecording is as large as recordings get: 10 000 sites of 40 frames with long names.
func largeRecording(t testing.TB) *recording.Recording {
	rec := wholeRecording(t)
	rec.Allocation.Sites = nil
	for i := range 10_000 {
		var stack recording.Stack
		for depth := range 40 {
			stack = append(stack, recording.Frame{Function: fmt.Sprintf("std::map<std::string, ledger::entry<%d>>::insert_%d", (i+depth)%700, depth), File: "/src/ledger.cc", Line: i % 1000, Module: "/usr/bin/ledgerd"})
		}
		rec.Allocation.Sites = append(rec.Allocation.Sites, recording.Site{Entry: "malloc", Stack: stack, Allocs: 10, AllocBytes: uint64(20_000 - i)})
	}
	rec.Allocation.Sites[0].Stack[0].Function = strings.Repeat("tuple<int, ", 20_000)
	for i := range 500 {
		rec.Allocation.Threads = append(rec.Allocation.Threads, recording.AllocationThread{TID: i, Name: fmt.Sprint("pool-", i)})
	}
	rec.Rounds.Series = make([]recording.Round, 10_000)
	return rec
}

func TestHTMLStaysSmall(t *testing.T) {
	const most = 10 << 20
	if size := len(pageOf(t, largeRecording(t))); size > most {
		t.Errorf("the page of 10,000 sites has %d bytes, want at most %d", size, most)
	}
}

// A recording without any section still makes a page.
func TestHTMLOfAnEmptyRecording(t *testing.T) {
	if page := pageOf(t, &recording.Recording{}); !strings.Contains(page, "How the numbers were made") {
		t.Error("the page lacks its last section")
	}
}

// Whatever a function, a thread and a lock are called, the page keeps its shape.
func FuzzHTMLNames(f *testing.F) {
	for _, name := range []string{"main", "</script><script>", `"onload="x`, "{{.}}", "a;b c\x00\xff", "std::map<int, std::vector<char>>", "\u202e模板"} {
		f.Add(name)
	}
	rec := &recording.Recording{
		Allocation: &recording.Allocation{Sites: []recording.Site{{Stack: recording.Stack{{}}}}, Threads: []recording.AllocationThread{{}}},
		Locks:      &recording.Locks{Locks: []recording.Lock{{}}},
	}
	tags := func(page string) []int {
		return []int{strings.Count(page, "<"), strings.Count(page, ">"), strings.Count(page, "=\"")}
	}
	want := fmt.Sprint(tags(pageOf(f, named(rec, "main"))))
	f.Fuzz(func(t *testing.T, name string) {
		if strings.TrimSpace(printable(name)) == "" {
			return // a lock without a name shows its address, a note without words nothing
		}
		if got := fmt.Sprint(tags(pageOf(t, named(rec, name)))); got != want {
			t.Errorf("%q changes the page's tags from %s to %s", name, want, got)
		}
	})
}

// named calls all things of a recording by one name.
func named(rec *recording.Recording, name string) *recording.Recording {
	rec.Allocation.Sites[0].Entry, rec.Allocation.Threads[0].Name, rec.Locks.Locks[0].Name = name, name, name
	rec.Allocation.Sites[0].Stack[0] = recording.Frame{Function: name, File: name, Line: 1}
	rec.Target.Command, rec.Notes = name, []string{name}
	return rec
}
