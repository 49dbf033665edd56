/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the kernel knows of a thread, for programs that look at others than the current one. */
#ifndef MEMTRACE_TASK_H
#define MEMTRACE_TASK_H

#include "thread.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sched_entity {
	__u64 sum_exec_runtime; /* ns on a CPU; brought up to date at each switch and tick */
};

struct sched_info {
	unsigned long long run_delay; /* ns runnable, waiting for a CPU */
};

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	int exit_state;
	int on_cpu;
	__s32 pid;
	__s32 tgid;
	unsigned long nvcsw;  /* switches because the thread slept */
	unsigned long nivcsw; /* switches because another thread was given the CPU */
	struct sched_entity se;
	struct sched_info sched_info;
	char comm[THREAD_NAME];
};

#pragma clang attribute pop

/* new_task_thread is new_thread for a thread that is not the current one. */
shared_function __u32 new_task_thread(struct task_struct *task)
{
	enum thread_counts seen = THREADS_SEEN;
	__u64 *count = bpf_map_lookup_elem(&thread_count, &seen);
	struct thread *thread;
	__u32 slot;

	if (!count)
		return SLOT_OVERFLOW;
	slot = __sync_fetch_and_add(count, 1) + SLOT_FIRST;
	thread = bpf_map_lookup_elem(&threads, &slot);
	if (!thread) {
		count_loss(LOSS_THREADS);
		return SLOT_OVERFLOW;
	}
	thread->pid = BPF_CORE_READ(task, tgid);
	thread->tid = BPF_CORE_READ(task, pid);
	thread->first_ns = bpf_ktime_get_ns();
	bpf_core_read_str(thread->name, sizeof(thread->name), &task->comm);
	return slot;
}

/* task_slot is current_slot for any thread of the target, which must not run meanwhile or
 * have its slot already: two callers could give it two. */
static __always_inline __u32 task_slot(struct task_struct *task)
{
	__u32 *slot = bpf_task_storage_get(&thread_slots, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!slot) {
		count_loss(LOSS_THREADS);
		return SLOT_OVERFLOW;
	}
	if (*slot == SLOT_NONE)
		*slot = new_task_thread(task);
	return *slot;
}

/* syscall_of returns the number of the system call that a thread is in, negative when it
 * came into the kernel by an exception or an interrupt. */
static __always_inline __s64 syscall_of(struct task_struct *task)
{
#if defined(__TARGET_ARCH_arm64)
	struct pt_regs___syscall {
		__s32 syscallno;
	} __attribute__((preserve_access_index)) *regs = (void *)bpf_task_pt_regs(task);

	return BPF_CORE_READ(regs, syscallno);
#else
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);
	__u64 number = -1;

	bpf_probe_read_kernel(&number, sizeof(number), &regs->orig_ax);
	return number;
#endif
}

#endif
