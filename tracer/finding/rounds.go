package finding

import "memtrace/tracer/recording"

// leastRounds is the number of rounds from which they tell something.
const leastRounds = 20

// idleShare is the share of rounds from which a loop is said to do nothing: that many began
// because a wait for events timed out, and no more than the rest put anything out.
const idleShare = 0.95

// roundsJudged returns the groups of threads whose rounds are many enough.
func roundsJudged(rec *recording.Recording) []recording.RoundGroup {
	if rec.Rounds == nil {
		return nil
	}
	var groups []recording.RoundGroup
	for _, g := range rec.Rounds.Groups() {
		if g.Count >= leastRounds && g.PeriodNS.Mean > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

// idles tells whether a thread wakes up, finds that nothing has happened, and lets nobody
// know. A plain sleep says nothing: a thread that sleeps between frames has its work in
// memory.
func idles(g *recording.RoundGroup) bool {
	if g.OfProcess() || g.Wait == "" || g.Wait == "nanosleep" || g.Wait == "clock_nanosleep" {
		return false
	}
	return float64(g.Timeouts) >= idleShare*float64(g.Count) && float64(g.Writes+g.Wakes) <= (1-idleShare)*float64(g.Count)
}

// groupName is the thread, or the process.
func groupName(g *recording.RoundGroup) string {
	if g.OfProcess() || g.Name == "" {
		return "process"
	}
	return "thread " + g.Name
}
