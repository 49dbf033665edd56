/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The round family: where one round of work ends and the next begins, and what happened in
 * between. Rounds of a thread end when it returns from an idle wait; rounds of the whole
 * process end where the user said so.
 */
#ifndef MEMTRACE_ROUND_H
#define MEMTRACE_ROUND_H

#include "types.h"

#define SIZE_CLASSES 64

/* System calls are told apart by a table that is filled at load; larger numbers are not. */
#define MAX_SYSCALL 512

/* What a system call means to a round: the lower bits of its entry in the table. */
enum syscall_kind {
	SYSCALL_OTHER,
	SYSCALL_SLEEPS,	      /* waits whatever its arguments are: nanosleep */
	SYSCALL_MILLISECONDS, /* waits unless the argument is 0: epoll_wait, poll */
	SYSCALL_TIMESPEC,     /* waits unless the argument points to 0: ppoll, select */
	SYSCALL_MAY_SLEEP,    /* an idle wait if the thread slept in it: accept */
	SYSCALL_FUTEX,	      /* waits with a timeout, or wakes others */
	SYSCALL_RING,	      /* io_uring_enter */
	SYSCALL_SENDS,	      /* carries something out of the process */
	SYSCALL_WRITES,	      /* the same, from a buffer that the arguments name */
	SYSCALL_WRITES_VECTOR, /* from several buffers */
	SYSCALL_WRITES_MESSAGE, /* from a message that points to several buffers */
	SYSCALL_KINDS,
};

/* The upper bits: which argument counts. */
#define SYSCALL_KIND_BITS 4
#define SYSCALL_KIND_MASK ((1 << SYSCALL_KIND_BITS) - 1)

/* What happened in a round. */
enum round_flags {
	ROUND_WROTE = 1,      /* the thread wrote or sent something */
	ROUND_WOKE = 2,	      /* it woke another thread */
	ROUND_TIMED_OUT = 4,  /* it began because a wait timed out */
	ROUND_INCOMPLETE = 8, /* the allocation probes were out for a time */
	ROUND_BOUNDARY = 16,  /* a boundary of the process: the figures are sums since the start */
};

/* A round of a thread; or a boundary of the process, whose figures are sums since the start. */
struct round_event {
	__u64 index;	/* of the thread's rounds, or of the process's boundaries, from 1 */
	__u64 start_ns; /* when it began */
	__u64 duration_ns; /* to the next wait */
	__u64 idle_ns;	/* the wait before it */
	__u64 period_ns; /* to the start of the next round */
	__u64 cpu_ns;
	__u64 allocs;
	__u64 alloc_bytes;
	__u64 frees;
	__u64 free_bytes;
	__u64 gaps; /* COURSE_GAPS, of a boundary */
	__u32 slot;
	enum round_flags flags;
	__u32 wait; /* the system call that the round began with */
	__u32 pad;
};

/* Where a thread's counters stand. */
struct round_mark {
	__u64 cpu_ns;
	__u64 allocs;
	__u64 alloc_bytes;
	__u64 frees;
	__u64 free_bytes;
	__u64 gaps;
};

/* The sums over a thread's rounds: those of allocations over the complete ones only. */
struct round_sums {
	__u64 count;
	__u64 incomplete;
	__u64 lost; /* rounds that the log had no room for */
	__u64 duration_ns;
	__u64 idle_ns;
	__u64 period_ns;
	__u64 cpu_ns;
	__u64 allocs;
	__u64 alloc_bytes;
	__u64 max_duration_ns;
	__u64 max_idle_ns;
	__u64 max_period_ns;
	__u64 max_cpu_ns;
	__u64 max_allocs;
	__u64 max_alloc_bytes;
	__u64 writes;
	__u64 wakes;
	__u64 timeouts;
	__u64 by_bytes[SIZE_CLASSES]; /* class k: above 2^(k-1) and up to 2^k bytes */
};

/* Lines that are looked for: at most so many bytes of them. */
#define LOG_TEXT 64
#define LOG_STREAMS 3 /* descriptors 0 to 2; 0 is not looked at */

/* The automaton that looks for the text: from a state, which is how many bytes of it have
 * been seen, the state that follows for each byte. */
struct log_state {
	__u8 next[256];
};

/* One of the target's output streams. */
struct log_stream {
	__u32 state;
	__u32 told; /* the line has begun a round already */
};

/* A write that the thread is in, where it goes to an output stream. */
struct log_write {
	__u64 address; /* of the buffer, or of the list of buffers */
	__u64 count; /* of bytes, or of buffers */
	__u32 stream; /* 0 = none */
	enum syscall_kind kind;
};

/* One thread's round, written by that thread alone. */
struct round_thread {
	__u64 hits;
	__u64 start_ns; /* 0 = none yet */
	__u64 wait_ns;	/* when the wait was entered that the thread is in, or was in last */
	__u64 idle_ns;
	__u64 switches; /* voluntary ones, when that wait was entered */
	__u32 inside;	/* the system call the thread is in, if it counts, and one added */
	enum syscall_kind kind; /* its kind */
	enum round_flags flags;
	__u32 wait;
	struct log_write write;
	struct round_mark mark;
	struct round_sums sums;
};

#endif
