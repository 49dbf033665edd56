//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* See sched.h. */
#include "sched.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MAX_SYSCALL 512
#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_DEAD 0x80

/* What a thread that sleeps in a system call sleeps for: the enum sched_sleep of each. */
const volatile __u8 sleep_of_syscall[MAX_SYSCALL];

/* The only process that is traced; 0 = those of the map. */
const volatile __u32 only_process;

/* The kernel counts how long threads wait for a CPU. */
const volatile bool runnable_known;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_THREADS_DEFAULT);
	__type(key, __u32);
	__type(value, struct sched_thread);
} sched_threads SEC(".maps");

/* The same as of now, for threads that have not left the CPU or have slept since: made when
 * the figures are read. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_THREADS_DEFAULT);
	__type(key, __u32);
	__type(value, struct sched_thread);
} sched_settled SEC(".maps");

struct bpf_iter_meta;

struct bpf_iter__task {
	__bpf_md_ptr(struct bpf_iter_meta *, meta);
	__bpf_md_ptr(struct task_struct *, task);
} __attribute__((preserve_access_index));

static __always_inline bool is_traced(__u32 process)
{
	if (only_process)
		return process == only_process;
	return bpf_map_lookup_elem(&targets, &process) != NULL;
}

/* sleep_of tells what a thread sleeps for that is about to sleep, or does already. */
static __always_inline enum sched_sleep sleep_of(struct task_struct *task)
{
	unsigned int state = task->__state;
	__s64 number;

	if (state & TASK_DEAD || task->exit_state)
		return SLEEP_NONE;
	if (state & TASK_UNINTERRUPTIBLE)
		return SLEEP_OTHER;
	number = syscall_of(task);
	if (number < 0 || number >= MAX_SYSCALL)
		return SLEEP_OTHER;
	return sleep_of_syscall[number];
}

static __always_inline void read_counters(struct task_struct *task, struct sched_counters *now)
{
	now->cpu_ns = task->se.sum_exec_runtime;
	now->runnable_ns = runnable_known ? task->sched_info.run_delay : 0;
	now->voluntary = task->nvcsw;
	now->nonvoluntary = task->nivcsw;
}

/* account gives the time since the thread was last looked at to what it slept for. */
static __always_inline void account(struct sched_thread *t, const struct sched_counters *now, __u64 at)
{
	__s64 slept = at - t->at_ns - (now->cpu_ns - t->last.cpu_ns) - (now->runnable_ns - t->last.runnable_ns);
	__u32 sleep = t->sleep;

	if (t->at_ns && sleep < SLEEP_KINDS && slept > 0)
		t->slept_ns[sleep] += slept;
	t->last = *now;
	t->at_ns = at;
}

/* A thread leaves the CPU. A thread that was not there when the trace began starts at zero,
 * as its counters did. */
SEC("tp_btf/sched_switch")
int BPF_PROG(sched_leave, bool preempted, struct task_struct *previous)
{
	struct sched_counters now;
	struct sched_thread *t;
	bool slept;
	__u32 slot;

	if (!is_traced(previous->tgid))
		return 0;
	slot = current_slot();
	if (slot < SLOT_FIRST)
		return 0;
	t = bpf_map_lookup_elem(&sched_threads, &slot);
	if (!t)
		return 0;
	read_counters(previous, &now);
	slept = now.voluntary != t->last.voluntary;
	account(t, &now, bpf_ktime_get_ns());
	t->sleep = slept ? sleep_of(previous) : SLEEP_NONE;
	t->hits++;
	return 0;
}

/* The threads that are there when the trace begins. */
SEC("iter/task")
int sched_begin(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sched_counters now;
	struct sched_thread *t;
	__u32 slot;

	if (!task || !is_traced(task->tgid))
		return 0;
	slot = task_slot(task);
	if (slot < SLOT_FIRST)
		return 0;
	t = bpf_map_lookup_elem(&sched_threads, &slot);
	if (!t)
		return 0;
	read_counters(task, &now);
	t->first = now;
	account(t, &now, bpf_ktime_get_ns());
	t->sleep = task->__state ? sleep_of(task) : SLEEP_NONE;
	return 0;
}

/* The figures as of now, of the threads that are there. */
SEC("iter/task")
int sched_settle(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sched_thread *t, *settled;
	struct sched_counters now;
	__u32 *slot;

	if (!task || !is_traced(task->tgid) || task->exit_state)
		return 0;
	slot = bpf_task_storage_get(&thread_slots, task, 0, 0);
	if (!slot || *slot < SLOT_FIRST)
		return 0;
	t = bpf_map_lookup_elem(&sched_threads, slot);
	settled = bpf_map_lookup_elem(&sched_settled, slot);
	if (!t || !settled)
		return 0;
	*settled = *t;
	if (settled->sleep == SLEEP_NONE && task->on_cpu)
		settled->sleep = SLEEP_RUNS;
	read_counters(task, &now);
	account(settled, &now, bpf_ktime_get_ns());
	return 0;
}
