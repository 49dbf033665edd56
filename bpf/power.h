/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Classes of sizes and times: powers of two. */
#ifndef MEMTRACE_POWER_H
#define MEMTRACE_POWER_H

#include "types.h"

/* size_class returns the smallest k with size <= 2^k. */
static __always_inline __u32 size_class(__u64 size)
{
	__u64 rest = size - 1;
	__u32 class = 0;

	if (size <= 1)
		return 0;
	if (rest >> 32) {
		class += 32;
		rest >>= 32;
	}
	if (rest >> 16) {
		class += 16;
		rest >>= 16;
	}
	if (rest >> 8) {
		class += 8;
		rest >>= 8;
	}
	if (rest >> 4) {
		class += 4;
		rest >>= 4;
	}
	if (rest >> 2) {
		class += 2;
		rest >>= 2;
	}
	if (rest >> 1)
		class += 1;
	return class + 1;
}

#endif
