//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* See lock.h. */
#include "lock.h"
#include "stack.h"
#include "task.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Every stack is taken. */
const volatile bool exact;

/* Counts the times that the probes were put in: what a thread or a lock was doing before a
 * gap means nothing after it. */
__u32 epoch;

/* The probes do nothing: they are put in and taken out one after the other, and would see
 * wakes without waits, or the other way round. */
bool resting = true;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct lock_key);
	__type(value, struct lock);
} locks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_THREADS_DEFAULT);
	__type(key, __u32);
	__type(value, struct lock_thread);
} lock_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct lock_share_key);
	__type(value, struct lock_share);
} lock_shares SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 32768);
	__type(key, struct lock_stack_key);
	__type(value, struct lock_stack);
} lock_stacks SEC(".maps");

#include "lock_word.h"
#include "lock_chain.h"
#include "lock_hold.h"
#include "lock_stack.h"
#include "lock_call.h"
#include "lock_wait.h"
#include "lock_wake.h"

/* What the tracepoints of system calls hand over. */
struct syscall_enter {
	__u64 common;
	__u32 number;
	__u32 pad;
	__u64 arguments[ARGUMENTS];
};

struct syscall_exit {
	__u64 common;
	__u32 number;
	__u32 pad;
	__s64 result;
};

/* thread_of returns the record of a thread that has a slot; NULL while the probes rest. */
static __always_inline struct lock_thread *thread_of(struct task_struct *task, __u32 *slot)
{
	__u32 *own = bpf_task_storage_get(&thread_slots, task, 0, 0);

	if (!own || *own < SLOT_FIRST || resting)
		return NULL;
	*slot = *own;
	return bpf_map_lookup_elem(&lock_threads, own);
}

/* forget drops what the thread was doing before a gap. */
static __always_inline void forget(struct lock_thread *t)
{
	t->epoch = epoch;
	t->does = FUTEX_DOES_NOTHING;
	t->interrupted = 0;
	t->last_wait = 0;
	t->relayed = 0;
	t->on_since_ns = 0;
	t->off_since_ns = 0;
	for (int i = 0; i < GRANTS; i++)
		t->grants[i].address = 0;
}

/* begin_call: the current thread makes a call. */
static __noinline void begin_call(struct lock_thread *t, __u32 slot, struct futex_call *call)
{
	__u64 now = bpf_ktime_get_ns();

	if (!t || !call)
		return;
	if (t->epoch != epoch)
		forget(t);
	if (!t->on_since_ns)
		t->on_since_ns = now;
	if (t->interrupted) {
		bool again = t->interrupted == RESUMES_AS_CALLED && call->does == t->does && call->address == t->address;

		t->interrupted = 0;
		if (again)
			return;
		finish_wait(t, slot, -EINTR, now);
	}
	if (call->does == FUTEX_DOES_WAIT || call->does == FUTEX_DOES_LOCK)
		begin_wait(t, call, now);
	else
		begin_wake(t, slot, call, now);
}

SEC("tracepoint/syscalls/sys_enter_futex")
int lock_enter(struct syscall_enter *ctx)
{
	__u64 arguments[ARGUMENTS];
	struct futex_call call = {};
	struct lock_thread *t;
	__u32 slot;

	if (resting || !filter_current())
		return 0;
	slot = current_slot();
	if (slot < SLOT_FIRST)
		return 0;
	t = bpf_map_lookup_elem(&lock_threads, &slot);
	if (!t)
		return 0;
	t->hits++;
	/* Not all calls have six: the kernel refuses a program that reads past a call's own. */
	if (bpf_probe_read_kernel(arguments, sizeof(arguments), ctx->arguments)) {
		count_loss(LOSS_READS);
		return 0;
	}
	decode(&call, arguments, ctx->number);
	if (call.does == FUTEX_DOES_NOTHING)
		return 0;
	t->pid = bpf_get_current_pid_tgid() >> 32;
	begin_call(t, slot, &call);
	settle_place(t, false);
	if (t->want_stack) {
		t->want_stack = 0;
		t->stack = take_task_stack();
	}
	return 0;
}

SEC("tracepoint/syscalls/sys_exit_futex")
int lock_leave(struct syscall_exit *ctx)
{
	struct lock_thread *t;
	__u32 slot;

	t = thread_of(bpf_get_current_task_btf(), &slot);
	if (!t || t->epoch != epoch || t->does == FUTEX_DOES_NOTHING)
		return 0;
	t->hits++;
	if (waits(t)) {
		t->interrupted = 0;
		end_wait(t, slot, ctx->result, bpf_ktime_get_ns());
	} else {
		if (ctx->result >= 0)
			end_wake(t, slot, ctx->result, bpf_ktime_get_ns());
		t->does = FUTEX_DOES_NOTHING;
	}
	settle_place(t, true);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(lock_waking, struct task_struct *task)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct lock_thread *waker, *t;
	__u32 waker_slot, slot;

	waker = thread_of(current, &waker_slot);
	if (!waker)
		return 0;
	if (waker->epoch == epoch && wakes(waker)) {
		t = thread_of(task, &slot);
		if (t && t->epoch == epoch && t->pid == waker->pid)
			wakes_sleeper(waker, waker_slot, t, slot);
	} else if (current->flags & PF_EXITING) {
		t = thread_of(task, &slot);
		if (t && t->epoch == epoch)
			exit_wakes(t);
	}
	return 0;
}

#define TASK_INTERRUPTIBLE 1

SEC("tp_btf/sched_switch")
int BPF_PROG(lock_switch, bool preempted, struct task_struct *previous, struct task_struct *next, unsigned int state)
{
	struct lock_thread *t;
	__u64 now;
	__u32 slot;

	t = thread_of(previous, &slot);
	if (t && t->epoch == epoch) {
		now = bpf_ktime_get_ns();
		t->hits++;
		if (t->on_since_ns)
			t->cpu_ns += now - t->on_since_ns;
		t->on_since_ns = 0;
		t->off_since_ns = now;
		t->off_asleep = !preempted && state != 0;
		if (!preempted && state & TASK_INTERRUPTIBLE)
			falls_asleep(t, now);
	}
	t = thread_of(next, &slot);
	if (t && t->epoch == epoch) {
		now = bpf_ktime_get_ns();
		if (t->off_since_ns && t->off_asleep)
			t->asleep_ns += now - t->off_since_ns;
		t->on_since_ns = now;
		if (t->woken_ns && !t->on_cpu_ns)
			t->on_cpu_ns = now;
	}
	return 0;
}

/* A thread ends, perhaps in its wait, because the process does. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(lock_exit, struct task_struct *task)
{
	struct lock_thread *t;
	__u32 slot;

	t = thread_of(task, &slot);
	if (!t || t->epoch != epoch)
		return 0;
	if (waits(t) && (t->asleep || t->interrupted))
		finish_wait(t, slot, -EINTR, bpf_ktime_get_ns());
	else if (t->relayed)
		keep_chain(t);
	settle_place(t, false);
	t->relayed = 0;
	t->does = FUTEX_DOES_NOTHING;
	return 0;
}

#include "lock_seed.h"
