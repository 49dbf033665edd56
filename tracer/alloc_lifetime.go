package tracer

import "memtrace/bpf"

// lifetimePartsShift is LIFETIME_PARTS_SHIFT of bpf/alloc.h: each power of two of
// nanoseconds is split in 32.
const lifetimePartsShift = 5

// bucketStart returns the smallest value that falls into a bucket of a histogram that parts
// each power of two in 1 << partsShift: the inverse of lifetime_bucket in bpf/alloc_site.h
// and of its like in bpf/buckets.h.
func bucketStart(bucket, partsShift int) float64 {
	parts := 1 << partsShift
	if bucket < parts {
		return float64(bucket)
	}
	power := bucket/parts + partsShift - 1
	return float64(uint64(parts+bucket%parts) << (power - partsShift))
}

// medianLifetime estimates the median from the histogram: the middle of its bucket, 1.6 %
// off at most. 0 when nothing was released.
func medianLifetime(histogram *bpf.AllocAllocLifetimes) int64 {
	var total, seen uint64
	for _, weight := range histogram.Blocks {
		total += weight
	}
	for bucket, weight := range histogram.Blocks {
		seen += weight
		if weight > 0 && seen*2 >= total {
			return int64((bucketStart(bucket, lifetimePartsShift) + bucketStart(bucket+1, lifetimePartsShift)) / 2)
		}
	}
	return 0
}
