/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The sched family: what the scheduler did with each thread. The kernel itself counts
 * switches, time on a CPU and time spent waiting for one; these counters are read when a
 * thread leaves the CPU. What is left of the time since it left the last time is sleep, and
 * the system call that it left from tells what for. So one program at one place is enough,
 * and a thread of another process costs a comparison: by the kernel's own statistics of
 * programs (bpf_stats_enabled, whose clock is in both figures) 49 ns for a switch of another
 * process and 101 ns for one of the target, on Linux 6.18.
 */
#ifndef MEMTRACE_SCHED_H
#define MEMTRACE_SCHED_H

#include "filter.h"
#include "task.h"

/* What a thread sleeps for. */
enum sched_sleep {
	SLEEP_NONE,  /* it left the CPU runnable and waits for it, or has ended */
	SLEEP_FUTEX, /* for another thread */
	SLEEP_IDLE,  /* for work, or until some time */
	SLEEP_OTHER, /* for a disk, a page, a pipe, … */
	SLEEP_RUNS,  /* it runs now, and the kernel has not counted that time yet */
	SLEEP_KINDS,
};

/* The kernel's own counters of a thread. */
struct sched_counters {
	__u64 cpu_ns;
	__u64 runnable_ns;
	__u64 voluntary;
	__u64 nonvoluntary;
};

/* One thread. Events of a thread follow each other: nothing here needs to be atomic. */
struct sched_thread {
	__u64 at_ns; /* when `last` was read; 0 = never */
	struct sched_counters first;
	struct sched_counters last;
	__u64 slept_ns[SLEEP_KINDS];
	enum sched_sleep sleep; /* what the time since at_ns goes to if it was slept */
	__u32 pad;
	__u64 hits;
};

#endif
