/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Stacks of the target's threads, kept once each under a 64-bit hash of their addresses. Two
 * different stacks with one hash would be taken for one; among a million stacks the chance
 * that there are such two is 1 in 36 million.
 */
#ifndef MEMTRACE_STACK_H
#define MEMTRACE_STACK_H

#include "filter.h"
#include "thread.h"
#include "walk.h"

#define MAX_STACKS_DEFAULT 16384

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_STACKS_DEFAULT);
	__type(key, __u64);
	__type(value, struct stack);
} stacks SEC(".maps");

/*
 * Each processor has a few drafts: a program can be preempted by another thread's, and
 * interrupted by a tracepoint's.
 */
#define DRAFTS_PER_CPU 4
#define MAX_DRAFTS_DEFAULT DRAFTS_PER_CPU

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_DRAFTS_DEFAULT); /* set at load: DRAFTS_PER_CPU for each processor */
	__type(key, __u32);
	__type(value, struct stack_draft);
} stack_drafts SEC(".maps");

/* borrow_draft returns a draft that nobody else uses, NULL if there is none. */
static __always_inline struct stack_draft *borrow_draft(void)
{
	__u32 first = bpf_get_smp_processor_id() * DRAFTS_PER_CPU, index;
	struct stack_draft *draft;

	for (__u32 i = 0; i < DRAFTS_PER_CPU; i++) {
		index = first + i;
		draft = bpf_map_lookup_elem(&stack_drafts, &index);
		if (draft && __sync_lock_test_and_set(&draft->busy, 1) == 0)
			return draft;
	}
	return NULL;
}

static __always_inline void return_draft(struct stack_draft *draft)
{
	__sync_lock_test_and_set(&draft->busy, 0);
}

/* store keeps the walked stack and returns its id; 0 when the map of stacks is full. */
static __always_inline __u64 store(struct walk *w)
{
	struct stack *stack = &w->draft->stack;
	__u64 id = w->hash ? w->hash : 1;

	count_loss(STACKS_TAKEN);
	if (w->flags & STACK_GUESSED)
		count_loss(STACKS_GUESSED);
	if (!(w->flags & STACK_COMPLETE))
		count_loss(STACKS_TRUNCATED);
	if (bpf_map_lookup_elem(&stacks, &id))
		return id;
	stack->depth = w->depth;
	stack->flags = w->flags;
	stack->last = w->rule;
	if (!bpf_map_update_elem(&stacks, &id, stack, BPF_ANY))
		return id;
	count_loss(LOSS_STACKS);
	return 0;
}

/* walk_from walks the stack from the registers in w, and stores it. */
static __noinline __u64 walk_from(struct walk *w, struct target *target)
{
	__u32 space = target ? target->space : 0;
	__u64 *word = bpf_map_lookup_elem(&unwind_spaces, &space), id;
	struct stack_draft *draft = borrow_draft();

	if (!draft || !word) {
		count_loss(LOSS_STACKS);
		if (draft)
			return_draft(draft);
		return 0;
	}
	w->draft = draft;
	w->space = *(volatile __u64 *)word;
	w->salt = (w->space ^ space) * MIX;
	w->hash = space;
	draft->stack.space = space;
	bpf_loop(STACK_DEPTH + 1, walk_step, w, 0);
	id = store(w);
	return_draft(draft);
	return id;
}

#if defined(__TARGET_ARCH_arm64)
#define REGISTER_LINK(regs) ((regs)->regs[30])
#else
#define REGISTER_LINK(regs) 0
#endif

/* walk_registers walks the current thread's stack from the given user registers. */
static __always_inline __u64 walk_registers(const struct pt_regs *regs, struct target *target, bool skip)
{
	struct walk w = {
		.pc = PT_REGS_IP(regs),
		.sp = PT_REGS_SP(regs),
		.fp = PT_REGS_FP(regs),
		.link = REGISTER_LINK(regs),
		.flags = skip ? STACK_RETURNING : 0,
		.interrupted = true,
		.skip = skip,
	};

	return walk_from(&w, target);
}

/*
 * take_stack stores the stack of a thread that has hit a uprobe, and returns its id; 0 when
 * it could not be stored, which is counted.
 */
shared_function __u64 take_stack(struct pt_regs *ctx)
{
	return walk_registers(ctx, filter_current(), false);
}

/* take_caller_stack is take_stack without the function that the probe is in. */
shared_function __u64 take_caller_stack(struct pt_regs *ctx)
{
	return walk_registers(ctx, filter_current(), true);
}

/* take_task_stack is take_stack for programs that run while the current thread is in the
 * kernel: tracepoints of system calls and of the scheduler. */
shared_function __u64 take_task_stack(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs regs;

	if (bpf_probe_read_kernel(&regs, sizeof(regs), (void *)bpf_task_pt_regs(task))) {
		count_loss(LOSS_STACKS);
		return 0;
	}
	return walk_registers(&regs, filter_current(), false);
}

/* return_address_at reads where a function returns to, given the stack pointer at its entry. */
static __always_inline __u64 return_address_at(struct pt_regs *ctx, __u64 sp)
{
#if defined(__TARGET_ARCH_arm64)
	return PT_REGS_RET(ctx);
#else
	__u64 address = 0;

	if (bpf_probe_read_user(&address, sizeof(address), (void *)sp))
		count_loss(LOSS_READS);
	return address;
#endif
}

/* return_address reads where the function that has just been entered returns to. */
static __always_inline __u64 return_address(struct pt_regs *ctx)
{
	return return_address_at(ctx, PT_REGS_SP(ctx));
}

#endif
