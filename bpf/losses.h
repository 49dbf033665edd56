/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What could not be recorded, counted. A zero is a promise that nothing was lost. */
#ifndef MEMTRACE_LOSSES_H
#define MEMTRACE_LOSSES_H

#include "types.h"

enum loss {
	LOSS_STACKS,  /* the map of stacks was full */
	LOSS_SITES,   /* a map of sites or of their shares was full */
	LOSS_THREADS, /* no slot was left for a thread */
	LOSS_EVENTS,  /* a ring buffer was full */
	LOSS_LOCKS,   /* the map of locks was full */
	LOSS_BLOCKS,  /* the map of followed blocks was full, or a followed block's state was gone */
	LOSS_READS,   /* the target's memory could not be read */
	LOSS_UNWIND_ROWS,
	STACKS_TAKEN, /* not losses, but how far stacks can be trusted */
	STACKS_TRUNCATED,
	STACKS_GUESSED,
	LOSS_KINDS,
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LOSS_KINDS);
	__type(key, enum loss);
	__type(value, __u64);
} losses SEC(".maps");

/* count_loss is called on rare paths: one counter for all processors. */
static __always_inline void count_loss(enum loss kind)
{
	enum loss key = kind;
	__u64 *count = bpf_map_lookup_elem(&losses, &key);

	if (count)
		__sync_fetch_and_add(count, 1);
}

#endif
