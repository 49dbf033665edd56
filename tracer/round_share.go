package tracer

import "memtrace/tracer/recording"

// shareRounds says anew what each site does in a round where the allocation probes were out
// for a time: its part of what its threads allocate, times what their complete rounds do.
func shareRounds(rec *recording.Recording) {
	if rec.Allocation == nil || !rec.Allocation.Estimated {
		return
	}
	groups := map[int]*threadRounds{} // by thread id; 0 = the process
	for _, t := range rec.Rounds.Threads {
		groups[t.TID] = &threadRounds{count: float64(t.Count), bytes: t.Bytes.Mean}
	}
	sites := rec.Allocation.Sites
	for i := range sites {
		eachShare(&sites[i], rec.Rounds.PerThread, func(tid int, bytes uint64) {
			if g := groups[tid]; g != nil {
				g.total += float64(bytes)
			}
		})
	}
	for i := range sites {
		s := &sites[i]
		var bytes, count float64
		eachShare(s, rec.Rounds.PerThread, func(tid int, part uint64) {
			if g := groups[tid]; g != nil && g.total > 0 {
				bytes += float64(part) / g.total * g.bytes * g.count
				count += g.count
			}
		})
		if count > 0 && s.BytesPerRound > 0 {
			s.AllocsPerRound *= bytes / count / s.BytesPerRound
			s.BytesPerRound = bytes / count
		}
	}
}

// threadRounds is what a thread's rounds come to.
type threadRounds struct {
	count float64
	bytes float64 // a round, mean of the complete ones
	total float64 // of all sites
}

// eachShare calls visit with the threads' shares of what a site allocates in rounds; the
// process's is that of thread 0.
func eachShare(s *recording.Site, perThread bool, visit func(tid int, bytes uint64)) {
	if !perThread {
		visit(0, s.RoundBytes)
		return
	}
	for _, t := range s.Threads {
		if t.RoundBytes > 0 {
			visit(t.TID, t.RoundBytes)
		}
	}
}
