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
	__type(value, struct walk);
} stack_drafts SEC(".maps");

/* borrow_draft returns a draft that nobody else uses, NULL if there is none. */
static __always_inline struct walk *borrow_draft(void)
{
	__u32 first = bpf_get_smp_processor_id() * DRAFTS_PER_CPU, index;
	struct walk *w;

	for (__u32 i = 0; i < DRAFTS_PER_CPU; i++) {
		index = first + i;
		w = bpf_map_lookup_elem(&stack_drafts, &index);
		if (w && __sync_lock_test_and_set(&w->busy, 1) == 0)
			return w;
	}
	return NULL;
}

static __always_inline void return_draft(struct walk *w)
{
	__sync_lock_test_and_set(&w->busy, 0);
}

/* store keeps the walked stack and returns its id; 0 when the map of stacks is full. */
static __always_inline __u64 store(struct walk *w)
{
	struct stack *stack = &w->stack;
	__u64 id = w->hash ? w->hash : 1;

	count_loss(STACKS_TAKEN);
	if (w->flags & STACK_GUESSED)
		count_loss(STACKS_GUESSED);
	if (!(w->flags & STACK_COMPLETE))
		count_loss(STACKS_TRUNCATED);
	if (bpf_map_lookup_elem(&stacks, &id))
		return id;
	stack->flags = w->flags;
	stack->last = w->rule;
	if (!bpf_map_update_elem(&stacks, &id, stack, BPF_ANY))
		return id;
	count_loss(LOSS_STACKS);
	return 0;
}

#define WALK_SKIP_SHIFT 32

/*
 * walk_from walks the current thread's stack from the given registers, and stores it. The
 * last argument is the space, and above it whether the first function is left out. The
 * function is global so that the verifier looks at it once.
 */
__noinline __u64 walk_from(__u64 pc, __u64 sp, __u64 fp, __u64 link, __u64 space_and_skip)
{
	__u32 space = space_and_skip;
	bool skip = space_and_skip >> WALK_SKIP_SHIFT;
	__u64 *word = bpf_map_lookup_elem(&unwind_spaces, &space), id;
	struct walk *w = borrow_draft();

	if (!w || !word) {
		count_loss(LOSS_STACKS);
		if (w)
			return_draft(w);
		return 0;
	}
	w->space = *(volatile __u64 *)word;
	w->salt = (w->space ^ space) * MIX;
	w->pc = pc;
	w->sp = sp;
	w->fp = fp;
	w->link = link;
	w->hash = space;
	w->window_bytes = 0;
	w->trampoline = trampoline_address();
	w->flags = skip ? STACK_RETURNING : 0;
	w->interrupted = true;
	w->skip = skip;
	w->guessed = false;
	w->stack.depth = 0;
	w->stack.space = space;
	bpf_loop(STACK_DEPTH + 1, walk_step, &w, 0);
	id = store(w);
	return_draft(w);
	return id;
}

#if defined(__TARGET_ARCH_arm64)
#define REGISTER_LINK(regs) ((regs)->regs[30])
#define READ_LINK(value, regs) read_register(value, &(regs)->regs[30])
#else
#define REGISTER_LINK(regs) 0
#define READ_LINK(value, regs) true
#endif

/* walk_registers walks the current thread's stack from its user registers. */
static __always_inline __u64 walk_registers(const struct pt_regs *regs, bool skip)
{
	struct target *target = filter_current();

	if (!target) {
		count_loss(LOSS_STACKS);
		return 0;
	}
	return walk_from(PT_REGS_IP(regs), PT_REGS_SP(regs), PT_REGS_FP(regs), REGISTER_LINK(regs),
			 target->space | (__u64)skip << WALK_SKIP_SHIFT);
}

/*
 * take_stack stores the stack of a thread that has hit a uprobe, and returns its id; 0 when
 * it could not be stored, which is counted.
 */
shared_function __u64 take_stack(struct pt_regs *ctx)
{
	return walk_registers(ctx, false);
}

/* take_caller_stack is take_stack without the function that the probe is in. */
shared_function __u64 take_caller_stack(struct pt_regs *ctx)
{
	return walk_registers(ctx, true);
}

static __always_inline bool read_register(__u64 *value, const void *from)
{
	return !bpf_probe_read_kernel(value, sizeof(*value), from);
}

/* take_task_stack is take_stack for programs that run while the current thread is in the
 * kernel: tracepoints of system calls and of the scheduler. Of the registers, which take 272
 * bytes on arm64, only those that are needed are copied. */
shared_function __u64 take_task_stack(void)
{
	const struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	struct target *target = filter_current();
	__u64 pc, sp, fp, link = 0;

	if (!target || !read_register(&pc, &PT_REGS_IP(regs)) || !read_register(&sp, &PT_REGS_SP(regs)) ||
	    !read_register(&fp, &PT_REGS_FP(regs)) || !READ_LINK(&link, regs)) {
		count_loss(LOSS_STACKS);
		return 0;
	}
	return walk_from(pc, sp, fp, link, target->space);
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
