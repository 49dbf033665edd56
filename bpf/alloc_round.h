/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a site does in a round of work. */
#ifndef MEMTRACE_ALLOC_ROUND_H
#define MEMTRACE_ALLOC_ROUND_H

/* round_of returns the round that the thread of a slot is in; 0 = none. */
static __always_inline __u64 round_of(__u32 slot)
{
	struct thread *thread;

	if (process_rounds)
		return course_of(COURSE_ROUND);
	thread = bpf_map_lookup_elem(&threads, &slot);
	return thread ? thread->round : 0;
}

static __always_inline __u64 squared(__u64 bytes)
{
	bytes >>= ROUND_SQUARE_SHIFT;
	return bytes * bytes;
}

/* add_to_thread_round adds a call to what the thread's round asked of the site. */
static __always_inline void add_to_thread_round(struct alloc_share *share, __u64 round, __u64 bytes, __u64 weight)
{
	if (share->round != round) {
		share->squares += squared(share->this_bytes);
		share->this_bytes = 0;
		share->round = round;
		share->rounds++;
	}
	share->this_bytes += bytes;
	share->round_bytes += bytes;
	share->round_allocs += weight;
}

/* add_to_process_round is the same for a round of all threads. The first of them to come in
 * a new round closes the one before; what another adds at that very moment may count there. */
static __always_inline void add_to_process_round(struct alloc_share *share, __u64 round, __u64 bytes, __u64 weight)
{
	__u64 last = *(volatile __u64 *)&share->round;

	if (last < round && __sync_val_compare_and_swap(&share->round, last, round) == last) {
		__sync_fetch_and_add(&share->squares, squared(__sync_lock_test_and_set(&share->this_bytes, 0)));
		__sync_fetch_and_add(&share->rounds, 1);
	}
	__sync_fetch_and_add(&share->this_bytes, bytes);
	__sync_fetch_and_add(&share->round_bytes, bytes);
	__sync_fetch_and_add(&share->round_allocs, weight);
}

#endif
