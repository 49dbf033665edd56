/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The mmap family: the system calls by which a process takes memory from the kernel and gives
 * it back, those of the allocator included, as events in the order in which they took effect.
 */
#ifndef MEMTRACE_MMAP_H
#define MEMTRACE_MMAP_H

#include "types.h"

/* The calls that are followed; the numbers differ between architectures. */
enum memory_call {
	CALL_NONE,
	CALL_MMAP,
	CALL_MUNMAP,
	CALL_MREMAP,
	CALL_BRK,
	CALL_MADVISE,
	CALL_MPROTECT,
	MEMORY_CALLS,
};

#define MEMORY_ARGUMENTS 6

/* The allocator's own code: at most this many ranges. */
#define MAX_INSIDE 64

struct mmap_range {
	__u64 start;
	__u64 end;
};

struct mmap_event {
	__u64 ns;
	__u64 stack; /* 0 = not taken, or lost */
	__u64 arguments[MEMORY_ARGUMENTS];
	__s64 result; /* of munmap always 0: its event is made before the call */
	__u64 threshold; /* the allocator's mmap threshold, 0 = not known */
	__u32 slot;
	enum memory_call call;
	__u32 allocators; /* the allocator made the call itself */
	__u32 pad;
};

/* One thread: the call that it is in. Written by that thread alone. */
struct mmap_thread {
	__u64 hits;
	__u64 arguments[MEMORY_ARGUMENTS];
	enum memory_call call;
	__u32 allocators;
	__u32 trimming; /* it is in malloc_trim: set by the arena family */
	__u32 heaps; /* the mappings for heaps that the allocator made in this thread */
};

#endif
