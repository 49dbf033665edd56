package finding

import (
	"cmp"
	"fmt"
	"slices"

	"memtrace/tracer/recording"
)

// What makes churn: few sites have most of the bytes of every round, and free them in it.
const (
	churnShare   = 0.9       // of the round's bytes
	churnSites   = 10        // at most
	churnFreed   = 0.9       // of a site's blocks, in the round that made them
	churnSamples = 5         // of each site: fewer say nothing
	churnSampled = 50        // of them together
	churnBytes   = 256 << 10 // a second, from where on it is worth a word
)

// roundChurn says that the same few sites allocate and free the same every round. A server
// that does so for each request is healthy: only a loop with nothing to do makes it more
// than a remark.
func roundChurn(rec *recording.Recording) []recording.Finding {
	if rec.Allocation == nil || !rec.Allocation.Lifetimes {
		return nil
	}
	found := []recording.Finding{}
	for _, g := range roundsJudged(rec) {
		perSecond := g.Bytes.Mean / g.PeriodNS.Mean * 1e9
		sites, covered := churningSites(rec.Allocation.Sites, &g)
		if len(sites) == 0 || perSecond < churnBytes || g.Count-g.Incomplete < leastRounds {
			continue
		}
		severity := recording.Info
		if idles(&g) {
			severity = recording.Medium
		}
		function, _ := recording.Dominant(rec.Allocation.Sites, g.Weight)
		found = append(found, recording.Finding{
			Kind:     "round-churn",
			Severity: severity,
			Subject:  groupName(&g),
			Summary: fmt.Sprintf("%s up %s of the %s that a round of %s allocates on average, freed in the same round: %s a second",
				makes(len(sites)), percent(covered), size(uint64(g.Bytes.Mean)), groupName(&g), size(uint64(perSecond))),
			Evidence: map[string]float64{
				"sites": float64(len(sites)), "covered_fraction": covered, "bytes_per_round": g.Bytes.Mean, "allocs_per_round": g.Allocs.Mean,
				"period_ns": g.PeriodNS.Mean, "bytes_per_second": perSecond, "rounds": float64(g.Count),
			},
			Next: fmt.Sprintf("keep the memory from round to round: a reusable buffer in %s removes %s/s", function, size(uint64(perSecond*covered))),
		})
	}
	return found
}

func makes(sites int) string {
	if sites == 1 {
		return "1 site makes"
	}
	return fmt.Sprintf("%d sites make", sites)
}

// churningSites returns the fewest sites that have churnShare of the group's bytes, all of
// them freed in their round; none when it takes too many, or others.
func churningSites(all []recording.Site, g *recording.RoundGroup) (sites []*recording.Site, covered float64) {
	var total, sum, sampled uint64
	for i := range all {
		if bytes := g.Weight(&all[i]); bytes > 0 {
			total += bytes
			sites = append(sites, &all[i])
		}
	}
	slices.SortStableFunc(sites, func(a, b *recording.Site) int { return cmp.Compare(g.Weight(b), g.Weight(a)) })
	for n, s := range sites {
		if n == churnSites || s.SameRoundFraction < churnFreed || s.Sampled < churnSamples {
			return nil, 0
		}
		sum += g.Weight(s)
		sampled += s.Sampled
		if covered = share(sum, total); covered >= churnShare && sampled >= churnSampled {
			return sites[:n+1], covered
		}
	}
	return nil, 0
}
