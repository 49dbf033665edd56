/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Stacks of the target's threads, kept once each under a 64-bit hash of their addresses.
 */
#ifndef MEMTRACE_STACK_H
#define MEMTRACE_STACK_H

#include "thread.h"

#define STACK_DEPTH 127
#define MAX_STACKS_DEFAULT 16384

/* What is known of a stack. */
enum stack_flags {
	STACK_COMPLETE = 1,  /* reached the thread's start */
	STACK_GUESSED = 2,   /* some step went by the frame pointer */
	STACK_RETURNING = 4, /* the first address is a return address: the callee is left out */
};

struct stack {
	__u32 depth;
	enum stack_flags flags;
	__u64 addresses[STACK_DEPTH]; /* leaf first */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_STACKS_DEFAULT);
	__type(key, __u64);
	__type(value, struct stack);
} stacks SEC(".maps");

/* Where each thread builds a stack: a program can be preempted, so none is shared. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_THREADS_DEFAULT);
	__type(key, __u32);
	__type(value, struct stack);
} stack_drafts SEC(".maps");

/* hash_stack mixes the addresses; 0 is never the hash of a stack. */
static __always_inline __u64 hash_stack(const struct stack *stack)
{
	__u64 hash = 0x9e3779b97f4a7c15ULL + stack->depth;

	for (int i = 0; i < STACK_DEPTH; i++) {
		if (i >= stack->depth)
			break;
		hash ^= stack->addresses[i];
		hash *= 0xff51afd7ed558ccdULL;
		hash ^= hash >> 32;
	}
	return hash ? hash : 1;
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

/*
 * take_caller_stack stores the stack of the caller of the function that has just been
 * entered, and returns its id; 0 when it could not be stored.
 */
shared_function __u64 take_caller_stack(struct pt_regs *ctx, __u32 slot)
{
	struct stack *draft = bpf_map_lookup_elem(&stack_drafts, &slot);
	const __u64 skip_entry = 1;
	long bytes;
	__u64 id;

	if (!draft) {
		count_loss(LOSS_STACKS);
		return 0;
	}
	count_loss(STACKS_TAKEN);
	draft->addresses[0] = return_address(ctx);
	bytes = bpf_get_stack(ctx, &draft->addresses[1], sizeof(draft->addresses) - sizeof(__u64),
			      BPF_F_USER_STACK | skip_entry);
	draft->depth = 1 + (bytes > 0 ? bytes / sizeof(__u64) : 0);
	draft->flags = STACK_GUESSED | STACK_RETURNING;
	id = hash_stack(draft);
	if (bpf_map_lookup_elem(&stacks, &id))
		return id;
	if (bpf_map_update_elem(&stacks, &id, draft, BPF_ANY)) {
		count_loss(LOSS_STACKS);
		return 0;
	}
	return id;
}

#endif
