package finding

import (
	"fmt"

	"memtrace/tracer/recording"
)

// From when on blocks that others free are worth a remark.
const (
	crossFraction = 0.5  // of a site's freed blocks
	crossShare    = 0.05 // of all bytes
	crossSamples  = 50
	crossSites    = 3 // at most
)

// crossThreadFree says that one thread allocates what others free: then memory moves
// between arenas, and thread caches fill on one side and run empty on the other.
func crossThreadFree(rec *recording.Recording) []recording.Finding {
	if rec.Allocation == nil || !rec.Allocation.Lifetimes {
		return nil
	}
	found := []recording.Finding{}
	for i := range rec.Allocation.Sites {
		s := &rec.Allocation.Sites[i]
		if len(found) == crossSites {
			break
		}
		part := share(s.AllocBytes, rec.Allocation.Totals.AllocBytes)
		if s.RemoteFreeFraction < crossFraction || part < crossShare || s.Sampled < crossSamples || len(s.Stack) == 0 {
			continue
		}
		where := s.Stack[0].Function
		if where == "" {
			where = s.Entry
		}
		found = append(found, recording.Finding{
			Kind:     "cross-thread-free",
			Severity: recording.Info,
			Subject:  where,
			Summary: fmt.Sprintf("%s of the blocks that %s allocates (%s of all bytes) are freed by another thread",
				percent(s.RemoteFreeFraction), where, percent(part)),
			Evidence: map[string]float64{
				"remote_free_fraction": s.RemoteFreeFraction, "alloc_bytes": float64(s.AllocBytes), "frees": float64(s.Frees),
				"bytes_fraction": part, "threads": float64(len(s.Threads)),
			},
			Next: "where this is hot, hand the memory back to the thread that made it, or give both one pool; see the lock findings for what it costs",
		})
	}
	return found
}
