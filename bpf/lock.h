/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The lock family: what threads sleep on in futex calls, who wakes them, and what they do in
 * between. A lock is a futex word. One that is taken without waiting never enters the kernel
 * and is not seen.
 *
 * The calls are seen through the tracepoints that each system call has of its own. Measured
 * with empty programs at enter and exit (Linux 6.18, virtual machine, least of 40 runs of
 * 200 000 calls): the BTF tracepoints sys_enter and sys_exit add 50 ns to a futex call of
 * 130 ns, these add 86. But those run for every system call of every process, and add 58 ns
 * to each, where these add 14 (the kernel's slower way in, and a bit to look at). And a BTF
 * program may be preempted and is then left out for whoever comes next on that processor,
 * so that calls go uncounted; these run without preemption. fentry would need a function to
 * hold on to, and is refused on some machines. The scheduler's events come with interrupts
 * off, where neither objection holds: BTF tracepoints.
 */
#ifndef MEMTRACE_LOCK_H
#define MEMTRACE_LOCK_H

#include "buckets.h"

/* What a futex call in progress does. */
enum futex_does {
	FUTEX_DOES_NOTHING, /* no call in progress, or one of no interest */
	FUTEX_DOES_WAIT,
	FUTEX_DOES_LOCK, /* a PI lock: waits only if it is taken */
	FUTEX_DOES_WAKE,
	FUTEX_DOES_UNLOCK, /* a PI lock: does not tell how many it woke */
	FUTEX_DOES_REQUEUE,
};

/* What has been seen of a lock, for telling its kind; the bits of lock.seen. */
enum lock_seen {
	SEEN_WAIT_ZERO = 1,	   /* waited while the word was 0 */
	SEEN_WAIT_ONE = 2,
	SEEN_WAIT_TWO = 4,
	SEEN_WAIT_OTHER = 8,
	SEEN_BITSET = 16,	   /* waited with a bit set other than "any" */
	SEEN_TIMEOUT = 32,	   /* waited with a timeout */
	SEEN_PI = 64,
	SEEN_REQUEUE = 128,
	SEEN_WAKE_MANY = 256,	   /* asked to wake more than one */
	SEEN_EXIT_WAKE = 512,	   /* a thread's exit woke a waiter */
	SEEN_WAITV = 1024,
	SEEN_WAKE_OP = 2048,
};

struct lock_key {
	__u64 address;
	__u32 pid; /* in the initial PID namespace */
	__u32 pad;
};

/* A stretch in which the lock had sleepers at all times. */
struct busy_period {
	__u64 start_ns; /* 0 = none */
	__u64 end_ns;
	__u64 handoffs;
	__u64 wakees; /* a bit for each thread that was woken, by the low bits of its slot */
	__u64 sleeper_ns;
};

/* The threads of a relay, the newest last; a ring of slots. */
#define CHAIN_SLOTS 16

struct lock_chain {
	__u64 start_ns;
	__u64 end_ns;
	__u64 length; /* handoffs; the rings hold the last of them */
	__u32 slots[CHAIN_SLOTS];
	__u32 gaps_ns[CHAIN_SLOTS]; /* from the handoff before, to the thread in the same place; at most GAP_MAX_NS */
};

#define GAP_MAX_NS 0xffffffffULL

/* One lock, written by all threads with atomic operations. */
struct lock {
	__u64 acquisitions; /* that had to wait, however often they slept for it */
	__u64 waits;	    /* that slept, or were about to */
	__u64 wait_ns;
	__u64 wait_max_ns;
	__u64 eagain;
	__u64 timeouts;
	__u64 interrupted;
	__u64 wakes;	    /* calls */
	__u64 empty_wakes;  /* of those, that found nobody */
	__u64 woken;	    /* threads */
	__u64 requeues;	    /* calls that move sleepers to another lock */
	__u64 requeued;	    /* sleepers moved away */
	__u64 requeued_to;
	__u64 requeued_ns;  /* when last */
	__u64 handoffs;
	__u64 effective;
	__u64 futile;
	__u64 holds;
	__u64 hold_ns;
	__u64 hold_cpu_ns;
	__u64 hold_asleep_ns;
	__u64 sleepers;
	__u64 sleepers_max;
	__u64 sleeper_area; /* minus the time at which each came, plus that at which each went */
	__u64 periods;	    /* finished ones */
	__u64 period_ns;
	__u64 convoy_ns;    /* of those like a convoy */
	__u64 period_area;  /* the sleepers' time when the current one began */
	struct busy_period now;
	struct busy_period longest;
	struct lock_chain chain; /* the longest that has ended here */
	enum lock_seen seen;
	__u32 epoch;
	__u32 value;	    /* of the last wait */
	__u32 pad;
	__u32 wait_times[TIME_BUCKETS];
	__u32 handoff_times[TIME_BUCKETS];
	__u32 hold_times[TIME_BUCKETS];
};

/* A lock that was handed to a thread which has not used it since. */
struct lock_grant {
	__u64 address; /* 0 = none */
	__u64 since_ns;
	__u64 cpu_ns;	 /* the thread's clocks then */
	__u64 asleep_ns;
};

#define GRANTS 4

/* A call that is still to be counted at the place that it was made from. */
struct lock_place {
	__u64 address;
	__u64 stack;	       /* 0 = not taken yet */
	__u64 ns;
	__u64 role_and_weight; /* 0 = none; the role in the lowest bit */
};

/* One thread: counts, and the call that it is in. */
struct lock_thread {
	__u64 hits;
	__u64 waits;
	__u64 slept;
	__u64 eagain;
	__u64 timeouts;
	__u64 wakes;
	__u64 empty_wakes;
	__u64 requeues;
	/* The call in progress, or the wait that a signal has interrupted. */
	__u64 address; /* of the word */
	__u64 second;  /* the other word of an operation on two, 0 = none */
	__u64 entered_ns;
	__u64 stack;   /* of a wait; 0 = not taken */
	__u64 count;   /* a requeue: how many to wake; futex_waitv: where its array lies */
	__u32 pid;
	enum futex_does does;
	__u32 epoch;
	__u32 woke;    /* threads that this call has woken */
	__u32 queued;  /* it is among the lock's sleepers */
	__u32 asleep;  /* it has slept in this call */
	__u32 interrupted; /* a signal has interrupted the wait, which may go on: see lock_wait.h */
	__u32 waitv;
	__u32 want_stack; /* of the wait that begins */
	__u32 pad;
	/* How the wait ends. */
	__u64 woken_ns; /* 0 = not yet */
	__u64 on_cpu_ns;
	__u64 woken_on; /* the lock's address */
	__u32 waker;	/* slot; 0 = not a thread of the target in a futex call */
	__u32 grant_next;
	/* What the thread was last seen doing, for acquisitions. */
	__u64 last_wait; /* address, 0 = its last call was no wait */
	/* The thread's clocks: only differences mean something. */
	__u64 on_since_ns; /* 0 = off the processor, or unknown */
	__u64 off_since_ns;
	__u64 cpu_ns;
	__u64 asleep_ns;
	__u32 off_asleep;
	__u32 relayed; /* a handoff woke the thread and it has made no futex call since */
	struct lock_place place;
	struct lock_grant grants[GRANTS];
	__u64 chain_on; /* the lock of the chain's last handoff */
	struct lock_chain chain; /* that led to the thread */
};

/* A thread's part in a lock, written by that thread alone. */
struct lock_share_key {
	__u64 address;
	__u32 slot;
	__u32 pad;
};

struct lock_share {
	__u64 waits;
	__u64 wait_ns;
	__u64 wakes;
	__u64 handoffs; /* to the thread */
};

/* A place where threads wait, or wake others. */
enum lock_role { ROLE_WAITER, ROLE_WAKER };

struct lock_stack_key {
	__u64 address;
	__u64 stack;
	__u32 pid;
	enum lock_role role;
};

struct lock_stack {
	__u64 calls; /* weights, in units of 1 / STACK_WEIGHT_ONE */
	__u64 wait_ns;
};

#define STACK_WEIGHT_SHIFT 8
#define STACK_WEIGHT_ONE (1ULL << STACK_WEIGHT_SHIFT)

#endif
