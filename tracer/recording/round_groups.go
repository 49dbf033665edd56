package recording

import (
	"cmp"
	"slices"
)

// RoundGroup is the threads of one name, as pools have them, and their rounds; or the whole
// process, where rounds are its own. The figures are those of the busiest thread.
type RoundGroup struct {
	RoundThread
	TIDs   map[int]bool // 0 stands for the process
	Rounds uint64
	Total  float64 // bytes of all rounds
}

// Groups joins the threads of one name, the most bytes first.
func (r *Rounds) Groups() []RoundGroup {
	index := map[string]int{}
	var groups []RoundGroup
	for _, t := range r.Threads {
		at, known := index[t.Name]
		if !known {
			at = len(groups)
			index[t.Name] = at
			groups = append(groups, RoundGroup{RoundThread: t, TIDs: map[int]bool{}})
		}
		g := &groups[at]
		g.TIDs[t.TID] = true
		g.Rounds += t.Count
		g.Total += t.Bytes.Mean * float64(t.Count)
		if t.Bytes.Mean*float64(t.Count) > g.Bytes.Mean*float64(g.Count) {
			g.RoundThread = t
		}
	}
	slices.SortStableFunc(groups, func(a, b RoundGroup) int { return cmp.Compare(b.Total, a.Total) })
	return groups
}

// OfProcess tells whether the rounds are the whole process's.
func (g *RoundGroup) OfProcess() bool { return g.TIDs[0] }

// Weight is how many of a site's bytes belong to the group's rounds.
func (g *RoundGroup) Weight(s *Site) uint64 {
	if g.OfProcess() {
		return s.RoundBytes
	}
	var bytes uint64
	for _, t := range s.Threads {
		if g.TIDs[t.TID] {
			bytes += t.RoundBytes
		}
	}
	return bytes
}
