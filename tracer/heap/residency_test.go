package heap

import (
	"math/rand/v2"
	"testing"
)

// Sums over words of bits agree with looking at each byte's page.
func TestResidencyCounts(t *testing.T) {
	const start, pages, page = 0x10000, 200, 4096
	random := rand.New(rand.NewPCG(1, 2))
	r := newResidency(start+5, start+pages*page-7, page)
	if r.start != start || r.end != start+pages*page {
		t.Fatalf("region %#x to %#x", r.start, r.end)
	}
	for i := range uint64(pages) {
		if random.IntN(3) > 0 {
			r.mark(i)
		}
	}
	resident := func(address uint64) bool {
		return address >= start && address < start+pages*page && r.has((address-start)/page)
	}
	for range 300 {
		from := start - page + random.Uint64N((pages+2)*page)
		to := from + random.Uint64N(70*page)
		var bytes, run uint64
		for address := from; address < to; address++ {
			if resident(address) {
				bytes++
			}
		}
		for run < to-from && resident(from+run) {
			run++
		}
		if got := r.bytes(from, to); got != bytes {
			t.Fatalf("%d bytes resident in %#x to %#x, counted %d", bytes, from, to, got)
		}
		if got := r.run(from, to-from); got != run {
			t.Fatalf("%d bytes can be read at %#x, counted %d", run, from, got)
		}
	}
	if r.bytes(start+10, start+10) != 0 || r.bytes(start+10, start) != 0 {
		t.Error("an empty range has resident bytes")
	}
}
