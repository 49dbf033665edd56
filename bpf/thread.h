/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Threads and their slots. A thread gets a slot at its first hit and keeps it; slots are
 * never reused, so a thread that is given an earlier one's id has figures of its own. Every
 * array that is kept for each thread is indexed by the slot.
 *
 * The slot is kept in the task itself: it is found without a search, and goes with the task.
 */
#ifndef MEMTRACE_THREAD_H
#define MEMTRACE_THREAD_H

#include "filter.h"
#include "losses.h"

/* The most threads that are told apart; set at load, sized for the target. */
#define MAX_THREADS_DEFAULT 1024

/* Slot 0 is nobody's. Slot 1 is shared by all threads that found none of their own: its
 * figures are rough. */
#define SLOT_NONE 0
#define SLOT_OVERFLOW 1
#define SLOT_FIRST 2
/* The thread runs another program than the one that is traced, or is a child that borrows its
 * memory (vfork) and with it the probes: no map has this index. */
#define SLOT_GONE 0xffffffffU

#define THREAD_NAME 16 /* TASK_COMM_LEN */

struct thread {
	__u32 pid; /* in the initial PID namespace */
	__u32 tid;
	__u64 first_ns;
	__u64 round; /* the thread's current round, counted by the round family; 0 = none yet */
	char name[THREAD_NAME];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_THREADS_DEFAULT);
	__type(key, __u32);
	__type(value, struct thread);
} threads SEC(".maps");

enum thread_counts {
	THREADS_SEEN,	   /* threads that asked for a slot */
	PROGRAMS_EXECUTED, /* how often the target has become another program: see exec.bpf.c */
	THREAD_COUNTS,
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, THREAD_COUNTS);
	__type(key, enum thread_counts);
	__type(value, __u64);
} thread_count SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} thread_slots SEC(".maps");

struct task_struct;

/* new_thread gives the current thread a slot. */
shared_function __u32 new_thread(void)
{
	enum thread_counts seen = THREADS_SEEN, executed = PROGRAMS_EXECUTED;
	__u64 *count = bpf_map_lookup_elem(&thread_count, &seen);
	__u64 *programs = bpf_map_lookup_elem(&thread_count, &executed);
	__u64 id = bpf_get_current_pid_tgid();
	struct thread *thread;
	__u32 slot;

	if (!count || !programs)
		return SLOT_OVERFLOW;
	if (*programs || !filter_current())
		return SLOT_GONE;
	slot = __sync_fetch_and_add(count, 1) + SLOT_FIRST;
	thread = bpf_map_lookup_elem(&threads, &slot);
	if (!thread) {
		count_loss(LOSS_THREADS);
		return SLOT_OVERFLOW;
	}
	thread->pid = id >> 32;
	thread->tid = (__u32)id;
	thread->first_ns = bpf_ktime_get_ns();
	bpf_get_current_comm(thread->name, sizeof(thread->name));
	return slot;
}

/* current_slot returns the slot of the current thread. */
static __always_inline __u32 current_slot(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 *slot = bpf_task_storage_get(&thread_slots, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!slot) {
		count_loss(LOSS_THREADS);
		return SLOT_OVERFLOW;
	}
	if (*slot == SLOT_NONE)
		*slot = new_thread();
	return *slot;
}

/* current_thread returns the current thread's record, and its slot. */
static __always_inline struct thread *current_thread(__u32 *slot)
{
	*slot = current_slot();
	return bpf_map_lookup_elem(&threads, slot);
}

#endif
