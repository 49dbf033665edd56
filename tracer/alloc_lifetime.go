package tracer

import "memtrace/bpf"

// lifetimePartsShift is LIFETIME_PARTS_SHIFT of bpf/alloc.h: each power of two of
// nanoseconds is split in four.
const lifetimePartsShift = 2

// lifetimeStart returns the shortest lifetime, in nanoseconds, that falls into a bucket:
// the inverse of lifetime_bucket in bpf/alloc_site.h.
func lifetimeStart(bucket int) float64 {
	const parts = 1 << lifetimePartsShift
	if bucket < parts {
		return float64(bucket)
	}
	power := bucket/parts + 1
	return float64(uint64(parts+bucket%parts) << (power - lifetimePartsShift))
}

// medianLifetime estimates the median from the histogram: the middle of its bucket, an
// eighth of the value off at most. 0 when nothing was released.
func medianLifetime(histogram *bpf.AllocAllocLifetimes) int64 {
	var total, seen uint64
	for _, weight := range histogram.Blocks {
		total += weight
	}
	for bucket, weight := range histogram.Blocks {
		seen += weight
		if weight > 0 && seen*2 >= total {
			return int64((lifetimeStart(bucket) + lifetimeStart(bucket+1)) / 2)
		}
	}
	return 0
}
