package output

import (
	"fmt"

	"memtrace/tracer/recording"
)

// textScheduling writes what the scheduler did with each thread, the busiest first. Times
// are shares of the trace.
func textScheduling(p *page, rec *recording.Recording) {
	s := rec.Scheduling
	if s == nil || len(s.Threads) == 0 || rec.Session.DurationNS <= 0 {
		return
	}
	p.heading("Scheduling, shares of the time, busiest threads first")
	titles := []column{{"thread", false}, {"tid", true}, {"on CPU", true}, {"waits for CPU", true}, {"on futexes", true},
		{"idle", true}, {"other", true}, {"voluntary/s", true}, {"nonvoluntary/s", true}}
	part := func(ns int64) string { return percentText(float64(ns) / float64(rec.Session.DurationNS)) }
	var rows [][]string
	for i, t := range s.Threads {
		if i == p.top {
			break
		}
		rows = append(rows, []string{clip(printable(t.Name), 15), fmt.Sprint(t.TID), part(t.CPUNS), part(t.RunnableWaitNS),
			part(t.FutexWaitNS), part(t.IdleWaitNS), part(t.OtherWaitNS), switchRate(t.Voluntary, rec), switchRate(t.Nonvoluntary, rec)})
	}
	p.table(titles, rows)
	p.more(len(s.Threads), "thread")
}

// switchRate is a number of context switches as a rate, without the unit.
func switchRate(n uint64, rec *recording.Recording) string {
	return countText(uint64(float64(n)/rec.Session.Duration().Seconds() + 0.5))
}
