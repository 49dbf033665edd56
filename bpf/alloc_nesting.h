/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An allocator enters itself: glibc's realloc(NULL, n) and small posix_memalign go through
 * malloc, realloc(p, 0) through free. Such a call counts once, as the outer one.
 *
 * A call is nested when it returns into the allocator's own code, or when the outer call
 * jumped to it as its last act: then both have one stack pointer and one return address. To
 * keep the ordinary call cheap, the return address is read only behind a call that can nest;
 * and for every free, because a thread that ends releases its cached chunks through free.
 */
#ifndef MEMTRACE_ALLOC_NESTING_H
#define MEMTRACE_ALLOC_NESTING_H

#include "trampoline.h"

/* rank orders what jumps to what: only to a lower rank. */
static __always_inline __u32 rank(__u32 does)
{
	switch (does) {
	case OPERATION_NEW_ALIGNED:
		return 6;
	case OPERATION_REALLOCARRAY:
	case OPERATION_POSIX_MEMALIGN:
		return 5;
	case OPERATION_REALLOC:
	case OPERATION_MEMALIGN:
		return 4;
	case OPERATION_CALLOC:
		return 3;
	case OPERATION_MALLOC:
		return 2;
	}
	return 1;
}

static __always_inline bool can_nest(__u32 does)
{
	return nests_anywhere || rank(does) > rank(OPERATION_CALLOC);
}

static __always_inline bool is_inside(__u64 address)
{
	for (__u32 i = 0; i < MAX_INSIDE; i++) {
		if (i >= inside_count)
			break;
		if (address >= inside[i].start && address < inside[i].end)
			return true;
	}
	return false;
}

/*
 * entry_sp is the stack pointer as it was when the function was entered. A release may be
 * probed behind the instruction that made its frame, where probing is cheaper; the upper half
 * of the cookie is the size of that frame.
 */
#define COOKIE_FRAME_SHIFT 32

static __always_inline __u64 entry_sp(struct pt_regs *ctx, __u32 does)
{
	__u64 sp = PT_REGS_SP(ctx);

	return does == OPERATION_FREE ? sp + (bpf_get_attach_cookie(ctx) >> COOKIE_FRAME_SHIFT) : sp;
}

/* remember_outer notes a call that may enter the allocator again. */
static __always_inline void remember_outer(struct pt_regs *ctx, struct alloc_thread *t, __u32 does)
{
	if (!can_nest(does))
		return;
	t->outer_sp = entry_sp(ctx, does);
	t->outer_return = return_address_at(ctx, t->outer_sp);
	t->outer_does = does;
	t->outer_entry = nests_anywhere ? bpf_get_attach_cookie(ctx) : 0;
}

/*
 * jumped_to tells whether the outer call, at the same stack pointer, has jumped here. When the
 * outer call's return is probed, the trampoline's address stands where its caller's did. Whose
 * probe that is does not matter: another tracer of another process is enough.
 */
static __always_inline bool jumped_to(struct pt_regs *ctx, struct alloc_thread *t, __u32 does, __u64 address)
{
	if (address != t->outer_return && address != trampoline_address())
		return false;
	if (rank(t->outer_does) > rank(does))
		return true;
	return nests_anywhere && t->outer_does == does && t->outer_entry > (__u32)bpf_get_attach_cookie(ctx);
}

/* nested tells whether the call that has just been entered is the allocator's own. */
static __always_inline bool nested(struct pt_regs *ctx, struct alloc_thread *t, __u32 does)
{
	__u64 sp = entry_sp(ctx, does), address;

	if (sp > t->outer_sp)
		t->outer_sp = 0; /* the outer call, if there was one, has returned */
	if (t->outer_sp == 0 && !nests_anywhere && does != OPERATION_FREE)
		return false;
	address = return_address_at(ctx, sp);
	if (is_inside(address))
		return true;
	if (sp != t->outer_sp)
		return false;
	if (!jumped_to(ctx, t, does, address)) {
		t->outer_sp = 0;
		return false;
	}
	t->outer_does = does;
	if (!can_nest(does))
		t->outer_sp = 0;
	return true;
}

#endif
