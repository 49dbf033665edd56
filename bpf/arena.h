/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The arena family: threads that are given an arena of glibc's malloc, and calls of
 * malloc_trim. Both are rare, so each is an event.
 */
#ifndef MEMTRACE_ARENA_H
#define MEMTRACE_ARENA_H

#include "types.h"

enum arena_event_kind {
	ARENA_GIVEN, /* arena_get2 has returned */
	ARENA_TRIM,  /* malloc_trim has returned */
};

/* What a trim finds resident, in pages. */
struct arena_event {
	__u64 start_ns;
	__u64 end_ns;
	__u64 stack;
	__u64 arena;	  /* given; 0 = none */
	__u64 avoided;	  /* the arena that could not serve the thread, 0 = it had none */
	__u64 made;	  /* mappings for heaps made meanwhile */
	__u64 result;	  /* of malloc_trim */
	__s64 pages_before; /* resident, malloc_trim only */
	__s64 pages_after;
	__u64 woken;	  /* threads that malloc_trim woke */
	__u32 slot;
	enum arena_event_kind kind;
};

/* One thread: the calls that it is in. Written by that thread alone. */
struct arena_thread {
	__u64 hits;
	struct arena_event given; /* arena_get2; start_ns 0 = not in it */
	struct arena_event trim;
};

#endif
