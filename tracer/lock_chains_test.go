package tracer

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"memtrace/bpf"
)

// The ring of a long relay holds its last threads; their times are counted back from its end.
func TestChainLinks(t *testing.T) {
	chain := bpf.LockLockChain{StartNs: 1000, EndNs: 1000}
	ring := uint64(len(chain.Slots))
	for chain.Length < ring+4 {
		chain.Length++
		chain.EndNs += 10 * chain.Length
		chain.Slots[chain.Length%ring] = uint32(chain.Length)
		chain.GapsNs[chain.Length%ring] = uint32(10 * chain.Length)
		links := chainLinks(chain)
		want := make([]chainLink, 0, ring)
		for i := chain.Length + 1 - min(ring, chain.Length+1); i <= chain.Length; i++ {
			want = append(want, chainLink{uint32(i), 1000 + 5*i*(i+1)})
		}
		if diff := cmp.Diff(want, links, cmp.AllowUnexported(chainLink{})); diff != "" {
			t.Fatalf("after %d handoffs:\n%s", chain.Length, diff)
		}
	}
}
