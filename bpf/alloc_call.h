/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What happens when an entry of the allocator is entered, and when it returns. */
#ifndef MEMTRACE_ALLOC_CALL_H
#define MEMTRACE_ALLOC_CALL_H

extern bool bpf_session_is_return(void) __ksym __weak;

/* What a program returns at an entry. Only a session reads it: 0 asks for the return. */
#define WANT_RETURN 0
#define NO_RETURN (returns_seen == RETURNS_SESSION)

#if defined(__TARGET_ARCH_arm64)
#define RETURN_POPS 0
#else
#define RETURN_POPS 8
#endif

static __always_inline bool is_return(void)
{
	return returns_seen == RETURNS_SESSION && bpf_session_is_return();
}

/* await notes a call whose return is looked at. */
static __always_inline int await(struct pt_regs *ctx, struct alloc_thread *t, const struct alloc_call *call)
{
	t->call = *call;
	t->call.sp = PT_REGS_SP(ctx);
	return WANT_RETURN;
}

/* sampled_new looks closely at a call that makes a block. */
static __noinline int sampled_new(struct pt_regs *ctx, struct alloc_thread *t, __u32 slot, struct alloc_call *call)
{
	if (!t || !call)
		return NO_RETURN;
	call->stack = take_caller_stack(ctx);
	call->entry = bpf_get_attach_cookie(ctx);
	call->weight = weight_of(call->size);
	if (returns_seen != RETURNS_UNSEEN)
		return await(ctx, t, call);
	count_new(t, call->size);
	add_to_site(site_id(call->stack, call->entry), call->stack, call->entry, slot, round_of(slot), call->size,
		    call->weight);
	return NO_RETURN;
}

/* returned looks at the return of an awaited call. */
static __noinline int returned(struct pt_regs *ctx);

/* make_new counts a call that makes a block, and looks closely at it if it is sampled. */
static __always_inline int make_new(struct pt_regs *ctx, struct alloc_thread *t, __u32 slot, __u32 does, __u64 size,
				    __u64 out)
{
	if (size > LARGEST_BLOCK) {
		t->failed++;
		return NO_RETURN;
	}
	if (!sampled(size)) {
		count_new(t, size);
		return NO_RETURN;
	}
	struct alloc_call call = { .size = size, .out = out, .does = does };

	return sampled_new(ctx, t, slot, &call);
}

/* entered_new: a call that makes a block of the size. */
static __always_inline int entered_new(struct pt_regs *ctx, __u32 does, __u64 size, __u64 out)
{
	struct alloc_thread *t;
	__u32 slot;

	if (is_return())
		return returned(ctx);
	slot = current_slot();
	t = counters_of(slot);
	if (!t)
		return NO_RETURN;
	count_hit(t);
	if (between_windows() || nested(ctx, t, does))
		return NO_RETURN;
	remember_outer(ctx, t, does);
	return make_new(ctx, t, slot, does, size, out);
}

static __always_inline int entered_free(struct pt_regs *ctx, __u64 address)
{
	struct alloc_thread *t;
	__u32 slot;

	if (!address)
		return 0;
	slot = current_slot();
	t = counters_of(slot);
	if (!t)
		return 0;
	count_hit(t);
	if (between_windows() || nested(ctx, t, OPERATION_FREE))
		return 0;
	remember_outer(ctx, t, OPERATION_FREE);
	count_free(t, address);
	if (returns_seen != RETURNS_UNSEEN)
		settle(address, slot);
	return 0;
}

/*
 * keep decides whether a followed block is still followed at its new size: a block is
 * followed with the probability that its size gives, whatever sizes it had before. Otherwise
 * a small block that was followed by chance and then grew would stand for thousands.
 */
static __always_inline bool keep(__u64 old_weight, __u64 new_weight)
{
	if (new_weight <= old_weight)
		return true;
	return (__u64)bpf_get_prandom_u32() < (old_weight << 32 >> WEIGHT_SHIFT) / (new_weight >> WEIGHT_SHIFT);
}

/* adopt decides whether a block that was not followed is followed from now on, see keep. */
static __always_inline bool adopt(__u64 address, __u64 new_weight)
{
	__u64 old_weight, share;

	if (exact || !chunk_headers)
		return false;
	old_weight = weight_of(usable_size(address));
	if (new_weight >= old_weight)
		return false;
	/* (1/new - 1/old) / (1 - 1/old), the weights being in units of WEIGHT_ONE */
	share = ((old_weight - new_weight) << WEIGHT_SHIFT) / (old_weight - WEIGHT_ONE);
	return (__u64)bpf_get_prandom_u32() < (share << 32) / new_weight;
}

/* resize looks at a call that resizes a block. The block is parted from its address before
 * the allocator can give that to another thread. */
static __noinline int resize(struct pt_regs *ctx, struct alloc_thread *t, __u32 slot, struct alloc_call *call)
{
	struct alloc_block *found;
	struct alloc_site *site;
	__u64 address;

	if (!t || !call)
		return NO_RETURN;
	address = call->old;
	call->weight = weight_of(call->size);
	found = returns_seen == RETURNS_UNSEEN ? NULL : bpf_map_lookup_elem(&alloc_blocks, &address);
	if (found) {
		call->block = *found;
		bpf_map_delete_elem(&alloc_blocks, &address);
		site = bpf_map_lookup_elem(&alloc_sites, &call->block.site);
		if (site)
			part(&call->block, site);
		if (keep(call->block.weight, call->weight))
			return await(ctx, t, call);
	} else if (returns_seen != RETURNS_UNSEEN && adopt(address, call->weight)) {
		call->stack = take_caller_stack(ctx);
		call->entry = bpf_get_attach_cookie(ctx);
		return await(ctx, t, call);
	}
	if (exact && returns_seen != RETURNS_UNSEEN)
		return await(ctx, t, call);
	count_resize(t, call->size);
	return NO_RETURN;
}

/* entered_resize: realloc or reallocarray of the block at the address to the size. */
static __always_inline int entered_resize(struct pt_regs *ctx, __u32 does, __u64 address, __u64 size)
{
	struct alloc_thread *t;
	__u32 slot;

	if (is_return())
		return returned(ctx);
	slot = current_slot();
	t = counters_of(slot);
	if (!t)
		return NO_RETURN;
	count_hit(t);
	if (between_windows() || nested(ctx, t, does))
		return NO_RETURN;
	remember_outer(ctx, t, does);
	if (!address)
		return make_new(ctx, t, slot, does, size, 0);
	if (size == 0 && zero_resize_frees) {
		count_free(t, address);
		if (returns_seen != RETURNS_UNSEEN)
			settle(address, slot);
		return NO_RETURN;
	}
	if (size > LARGEST_BLOCK) {
		t->failed++;
		return NO_RETURN;
	}
	struct alloc_call call = { .size = size, .old = address, .does = does };

	return resize(ctx, t, slot, &call);
}

/* resized ends an awaited resize: address is where the block is now, 0 = the call failed
 * and the block is where it was. */
static __always_inline void resized(struct alloc_thread *t, struct alloc_call *call, __u32 slot, __u64 address)
{
	struct alloc_block block = call->block;

	if (!address) {
		t->failed++;
		if (block.weight)
			follow(call->old, &block, false);
		return;
	}
	count_resize(t, call->size);
	if (!block.weight) {
		if (exact)
			return; /* made before the trace began */
		block.site = site_id(call->stack, call->entry);
		if (!site_of(block.site, call->stack, call->entry))
			return;
		block.born_ns = bpf_ktime_get_ns();
		block.round = round_of(slot);
		block.slot = slot;
	}
	block.size = call->size;
	block.weight = call->weight;
	follow(address, &block, false);
}

/* made ends an awaited call that made a block. */
static __always_inline void made(struct alloc_thread *t, struct alloc_call *call, __u32 slot, __u64 address)
{
	struct alloc_block block = {
		.site = site_id(call->stack, call->entry),
		.size = call->size,
		.weight = call->weight,
		.born_ns = bpf_ktime_get_ns(),
		.round = round_of(slot),
		.slot = slot,
	};

	if (!address) {
		t->failed++;
		return;
	}
	count_new(t, call->size);
	add_to_site(block.site, call->stack, call->entry, slot, block.round, call->size, call->weight);
	follow(address, &block, true);
}

/* block_address is the block that a call hands over; 0 when it failed. */
static __always_inline __u64 block_address(struct pt_regs *ctx, const struct alloc_call *call)
{
	__u64 address = 0;

	if (call->does != OPERATION_POSIX_MEMALIGN)
		return PT_REGS_RC(ctx);
	if ((__u32)PT_REGS_RC(ctx) != 0)
		return 0;
	if (bpf_probe_read_user(&address, sizeof(address), (void *)call->out))
		count_loss(LOSS_READS);
	return address;
}

static __noinline int returned(struct pt_regs *ctx)
{
	__u32 slot = current_slot();
	struct alloc_thread *t = counters_of(slot);
	__u64 sp = PT_REGS_SP(ctx) - RETURN_POPS;
	struct alloc_call call;
	__u64 address;

	if (!t || t->call.sp == 0 || t->call.sp != sp)
		return 0;
	call = t->call;
	t->call.sp = 0;
	if (t->outer_sp == sp)
		t->outer_sp = 0;
	address = block_address(ctx, &call);
	if (call.old)
		resized(t, &call, slot, address);
	else
		made(t, &call, slot, address);
	return 0;
}

#endif
