/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Where the trace stands: what families must know of each other while it runs. */
#ifndef MEMTRACE_COURSE_H
#define MEMTRACE_COURSE_H

#include "types.h"

enum course_part {
	COURSE_ROUND, /* the process's current round, where rounds are the process's; 0 = none yet */
	COURSE_GAPS, /* how often the allocation probes went out or in again; odd = they are out */
	COURSE_PARTS,
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COURSE_PARTS);
	__type(key, enum course_part);
	__type(value, __u64);
} course SEC(".maps");

/* course_of returns a part's value. */
static __always_inline __u64 course_of(enum course_part part)
{
	enum course_part key = part;
	__u64 *value = bpf_map_lookup_elem(&course, &key);

	return value ? *(volatile __u64 *)value : 0;
}

/* next_of adds one to a part and returns the sum. */
static __always_inline __u64 next_of(enum course_part part)
{
	enum course_part key = part;
	__u64 *value = bpf_map_lookup_elem(&course, &key);

	return value ? __sync_fetch_and_add(value, 1) + 1 : 0;
}

#endif
