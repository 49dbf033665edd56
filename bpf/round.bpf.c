//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rounds: each is counted exactly from where the allocation family's counters stood at its
 * start, and goes to user space through a ring buffer that is read now and then, without
 * wake-ups. Sums and maxima of threads are kept here too: a full ring loses no more than the
 * percentiles' basis.
 */
#include "alloc.h"
#include "course.h"
#include "filter.h"
#include "power.h"
#include "round.h"
#include "thread.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The kernel's types: only what is read; a list's head is the same in all kernels. */
struct sched_entity {
	__u64 sum_exec_runtime;
} __attribute__((preserve_access_index));

struct list_head {
	struct list_head *next, *prev;
};

struct signal_struct {
	struct list_head thread_head;
	unsigned long long sum_sched_runtime;
} __attribute__((preserve_access_index));

struct task_struct {
	struct sched_entity se;
	struct signal_struct *signal;
	struct list_head thread_node;
	unsigned long nvcsw;
} __attribute__((preserve_access_index));

/* Set before load: a kind, and above it which argument counts. */
const volatile __u8 syscall_kinds[MAX_SYSCALL];
const volatile __u32 log_length; /* of the text that is looked for */

/* The allocation family's, where that is on. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_THREADS_DEFAULT);
	__type(key, __u32);
	__type(value, struct alloc_thread);
} alloc_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_THREADS_DEFAULT);
	__type(key, __u32);
	__type(value, struct round_thread);
} round_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} round_log SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LOG_TEXT + 1);
	__type(key, __u32);
	__type(value, struct log_state);
} log_states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LOG_STREAMS);
	__type(key, __u32);
	__type(value, struct log_stream);
} log_streams SEC(".maps");

#include "round_thread.h"
#include "round_process.h"
#include "round_log.h"

SEC("raw_tp/sys_enter")
int round_enter(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 number = ctx->args[1];
	__u8 kind;

	if (number >= MAX_SYSCALL)
		return 0;
	kind = syscall_kinds[number];
	if (kind == SYSCALL_OTHER || !filter_current())
		return 0;
	return entered_syscall((struct pt_regs *)ctx->args[0], number, kind);
}

SEC("raw_tp/sys_exit")
int round_exit(struct bpf_raw_tracepoint_args *ctx)
{
	return filter_current() ? left_syscall(ctx->args[1]) : 0;
}

SEC("uprobe")
int round_function(struct pt_regs *ctx)
{
	return filter_current() ? boundary() : 0;
}

SEC("raw_tp/sys_enter")
int round_log_enter(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 number = ctx->args[1];
	__u32 kind;

	if (number >= MAX_SYSCALL)
		return 0;
	kind = syscall_kinds[number] & SYSCALL_KIND_MASK;
	if (kind < SYSCALL_WRITES || !filter_current())
		return 0;
	return entered_write((struct pt_regs *)ctx->args[0], kind);
}

SEC("raw_tp/sys_exit")
int round_log_exit(struct bpf_raw_tracepoint_args *ctx)
{
	return filter_current() ? left_write(ctx->args[1]) : 0;
}
