package output

import (
	"strings"
	"testing"

	"memtrace/tracer/recording"
)

func TestTextScheduling(t *testing.T) {
	rec := &recording.Recording{
		Session: recording.Session{DurationNS: 2e9},
		Scheduling: &recording.Scheduling{Threads: []recording.ScheduledThread{
			{TID: 12, Name: "worker", CPUNS: 1e9, RunnableWaitNS: 2e8, FutexWaitNS: 6e8, Voluntary: 4001, Nonvoluntary: 20, OtherWaitNS: 2e8},
			{TID: 7, Name: "main\x1b[2J", IdleWaitNS: 2e9, Voluntary: 1},
		}},
	}
	var b strings.Builder
	if err := Text(&b, rec, Options{Top: 1}); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(b.String(), "busiest threads first\n")
	const want = `  thread  tid  on CPU  waits for CPU  on futexes  idle  other  voluntary/s  nonvoluntary/s
  worker   12    50 %           10 %        30 %   0 %   10 %        2,001              10
  … and 1 thread more (--top)
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	b.Reset()
	if err := Text(&b, rec, Options{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "\x1b") {
		t.Error("a thread's name controls the terminal")
	}
}
