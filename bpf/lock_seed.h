/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The threads that wait already when the probes are put in. */
#ifndef MEMTRACE_LOCK_SEED_H
#define MEMTRACE_LOCK_SEED_H

struct bpf_iter_meta;

struct bpf_iter__task {
	__bpf_md_ptr(struct bpf_iter_meta *, meta);
	__bpf_md_ptr(struct task_struct *, task);
} __attribute__((preserve_access_index));

/* sleeps_in_call tells whether a thread sleeps in a futex call that waits, and decodes it. */
static __always_inline bool sleeps_in_call(struct task_struct *task, struct futex_call *call)
{
	__s64 number = syscall_of(task);
	__u64 arguments[ARGUMENTS];
	struct pt_regs regs;

	if (!(task->__state & TASK_INTERRUPTIBLE) || (number != NR_FUTEX && number != NR_FUTEX_WAIT))
		return false;
	if (bpf_probe_read_kernel(&regs, sizeof(regs), (void *)bpf_task_pt_regs(task))) {
		count_loss(LOSS_READS);
		return false;
	}
#if defined(__TARGET_ARCH_arm64)
	for (int i = 0; i < ARGUMENTS; i++)
		arguments[i] = regs.regs[i];
#else
	arguments[0] = regs.di;
	arguments[1] = regs.si;
	arguments[2] = regs.dx;
	arguments[3] = regs.r10;
	arguments[4] = regs.r8;
	arguments[5] = regs.r9;
#endif
	decode(call, arguments, number);
	return call->does == FUTEX_DOES_WAIT || call->does == FUTEX_DOES_LOCK;
}

/* seed notes that a thread has waited for an unknown time: it counts from now on. */
static __noinline void seed(struct lock_thread *t, struct futex_call *call, __u64 now)
{
	struct lock *lock;

	if (!t || !call)
		return;
	forget(t);
	t->address = call->address;
	t->second = call->second;
	t->entered_ns = now;
	t->woken_ns = 0;
	t->woken_on = 0;
	t->on_cpu_ns = 0;
	t->waker = 0;
	t->stack = 0;
	t->waitv = 0;
	t->asleep = 1;
	t->off_since_ns = now;
	t->off_asleep = 1;
	t->last_wait = call->address;
	lock = lock_of(t->pid, call->address);
	if (!lock)
		return;
	lock->value = call->value;
	__sync_fetch_and_or((__u32 *)&lock->seen, call->seen);
	t->queued = 1;
	joined(lock, 1, now);
	t->does = call->does;
}

/* It runs after the other programs are in: a thread that moves on meanwhile is either seen
 * by them or found to have moved on. */
SEC("iter/task")
int lock_seed(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct futex_call call = {};
	struct lock_thread *t;
	__u32 pid, slot;

	if (!task)
		return 0;
	pid = task->tgid;
	if (!bpf_map_lookup_elem(&targets, &pid) || !sleeps_in_call(task, &call))
		return 0;
	slot = task_slot(task);
	if (slot < SLOT_FIRST)
		return 0;
	t = bpf_map_lookup_elem(&lock_threads, &slot);
	if (!t || t->epoch == epoch)
		return 0;
	t->pid = pid;
	seed(t, &call, bpf_ktime_get_ns());
	if (task->__state & TASK_INTERRUPTIBLE)
		return 0;
	wakes_up(t, t->address, bpf_ktime_get_ns());
	t->does = FUTEX_DOES_NOTHING;
	return 0;
}

#endif
