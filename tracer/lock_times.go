package tracer

// timePartsShift: the histograms of bpf/buckets.h part each power of two of nanoseconds in four.
const timePartsShift = 2

// percentile estimates from a histogram of bpf/buckets.h how long a share of the times is
// not exceeded: the middle of the bucket, an eighth off at most. 0 when it is empty.
func percentile(histogram []uint32, share float64) int64 {
	var total, seen float64
	for _, count := range histogram {
		total += float64(count)
	}
	for bucket, count := range histogram {
		seen += float64(count)
		if count > 0 && seen >= share*total {
			return int64((bucketStart(bucket, timePartsShift) + bucketStart(bucket+1, timePartsShift)) / 2)
		}
	}
	return 0
}

// addTime counts one more time in such a histogram.
func addTime(histogram []uint32, ns uint64) {
	for bucket := len(histogram) - 1; bucket >= 0; bucket-- {
		if float64(ns) >= bucketStart(bucket, timePartsShift) {
			histogram[bucket]++
			return
		}
	}
}
