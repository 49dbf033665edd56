/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Buckets of histograms of time: powers of two of nanoseconds, each in four parts. */
#ifndef MEMTRACE_BUCKETS_H
#define MEMTRACE_BUCKETS_H

#include "types.h"

#define TIME_PARTS_SHIFT 2
#define TIME_BUCKETS 192

/* power_of returns the largest k with 2^k <= value; 0 for 0. */
static __always_inline __u32 power_of(__u64 value)
{
	__u32 power = 0;

	if (value >> 32) {
		power += 32;
		value >>= 32;
	}
	if (value >> 16) {
		power += 16;
		value >>= 16;
	}
	if (value >> 8) {
		power += 8;
		value >>= 8;
	}
	if (value >> 4) {
		power += 4;
		value >>= 4;
	}
	if (value >> 2) {
		power += 2;
		value >>= 2;
	}
	return power + (value >> 1);
}

/* time_bucket maps nanoseconds to a bucket: the power of two and the two bits below it. */
static __always_inline __u32 time_bucket(__u64 ns)
{
	const __u64 parts = 1 << TIME_PARTS_SHIFT;
	__u32 power, bucket;

	if (ns < parts)
		return ns;
	power = power_of(ns);
	bucket = (power - 1) * parts + ((ns >> (power - TIME_PARTS_SHIFT)) & (parts - 1));
	return bucket < TIME_BUCKETS ? bucket : TIME_BUCKETS - 1;
}

/* count_time adds one to a histogram that all threads write to. */
static __always_inline void count_time(__u32 *histogram, __u64 ns)
{
	__u32 bucket = time_bucket(ns);

	if (bucket < TIME_BUCKETS)
		__sync_fetch_and_add(&histogram[bucket], 1);
}

#endif
