/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The allocation family: exact counters of each thread, and sites (a stack and an entry of
 * the allocator) that rest on sampled calls, or on all calls in exact mode.
 *
 * A weight is how many calls a sampled call stands for, in units of 1 / WEIGHT_ONE.
 */
#ifndef MEMTRACE_ALLOC_H
#define MEMTRACE_ALLOC_H

#include "types.h"

/* What an entry does; tracer/probe/table.go has the same numbers. */
enum operation {
	OPERATION_NONE,
	OPERATION_MALLOC,
	OPERATION_CALLOC,
	OPERATION_REALLOC,
	OPERATION_REALLOCARRAY,
	OPERATION_POSIX_MEMALIGN,
	OPERATION_MEMALIGN,
	OPERATION_FREE,
	OPERATION_TRIM,
	OPERATION_MALLOPT,
	OPERATION_NEW_ALIGNED,
};

/* How returns of the entries are seen. */
enum returns {
	RETURNS_UNSEEN,  /* no return probe */
	RETURNS_SESSION, /* the entry decides whether its return is probed */
	RETURNS_ALL,     /* a return probe at every entry */
};

#define WEIGHT_SHIFT 16
#define WEIGHT_ONE (1ULL << WEIGHT_SHIFT)

/* Class k holds sizes above 2^(k-1) and up to 2^k. */
#define SIZE_CLASSES 64

/* The allocator's own code: at most this many ranges. */
#define MAX_INSIDE 64

struct address_range {
	__u64 start;
	__u64 end;
};

/* A followed block, by its address. */
struct alloc_block {
	__u64 site;
	__u64 size; /* as requested */
	__u64 weight;
	__u64 born_ns;
	__u64 round; /* of the thread that made it; 0 = outside rounds */
	__u32 slot; /* the thread that made it */
	__u32 pad;
};

/* A call that has been entered and whose return is awaited. */
struct alloc_call {
	__u64 sp; /* the stack pointer at the entry; 0 = none */
	__u64 size;
	__u64 stack; /* stack id; 0 = not taken, or lost */
	__u64 weight;
	__u64 out; /* posix_memalign: where the block's address is stored */
	__u64 old; /* the block to resize; 0 = the call makes a new one */
	struct alloc_block block; /* the block to resize, where it was followed (weight > 0) */
	__u32 entry;
	__u32 does;
};

/* One thread's figures, written by that thread alone: no atomic operations. */
struct alloc_thread {
	__u64 hits;
	__u64 allocs;
	__u64 alloc_bytes;
	__u64 frees;
	__u64 free_bytes;
	__u64 reallocs;
	__u64 realloc_bytes;
	__u64 failed;
	__u64 remote_frees; /* a weight */
	__u64 size_allocs[SIZE_CLASSES];
	__u64 size_bytes[SIZE_CLASSES];
	/* The last call that may enter the allocator again: see nested(). */
	__u64 outer_sp; /* 0 = none */
	__u64 outer_return;
	__u32 outer_does;
	__u32 outer_entry;
	struct alloc_call call;
};

/* What a site is. */
struct alloc_site_key {
	__u64 stack;
	__u32 entry; /* index of the allocator's entry */
	__u32 pad;
};

/* A site's figures, written by all threads. Calls and blocks are weights, bytes are scaled. */
struct alloc_site {
	struct alloc_site_key key;
	__u64 allocs;
	__u64 alloc_bytes;
	__u64 sampled;
	__u64 frees;
	__u64 free_bytes;
	__u64 live_blocks;
	__u64 live_bytes;
	__u64 remote_frees;
	__u64 round_born; /* blocks born in a round */
	__u64 round_freed; /* of those, released in the same round */
};

/* A site's share of one thread, written by that thread alone. What a site does in the rounds
 * of the whole process is kept in the share of SLOT_NONE, written by all threads. */
struct alloc_share_key {
	__u64 site;
	__u32 slot;
	__u32 pad;
};

struct alloc_share {
	__u64 allocs;
	__u64 alloc_bytes;
	__u64 rounds; /* in which the site was seen */
	__u64 round; /* the last of them */
	__u64 round_allocs; /* a weight, all rounds */
	__u64 round_bytes; /* all rounds */
	__u64 this_bytes; /* the last round */
	__u64 squares; /* of the bytes of finished rounds, shifted right before squaring */
};

#define ROUND_SQUARE_SHIFT 6

/* Lifetimes of released blocks: powers of two of nanoseconds, each in 32 parts, so that the
 * middle of a bucket is 1.6 % off at most; up to 2^43 ns, more than two hours. */
#define LIFETIME_PARTS_SHIFT 5
#define LIFETIME_BUCKETS ((43 - LIFETIME_PARTS_SHIFT + 1) << LIFETIME_PARTS_SHIFT)

struct alloc_lifetimes {
	__u64 blocks[LIFETIME_BUCKETS]; /* weights */
};

#endif
