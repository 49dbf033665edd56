/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The sampled part: sites, what each thread contributes to them, and the blocks followed. */
#ifndef MEMTRACE_ALLOC_SITE_H
#define MEMTRACE_ALLOC_SITE_H

/*
 * sampled decides whether a call is looked at closely: with probability min(1, size /
 * sample_period), so that every byte counts the same. weight_of is the inverse.
 */
static __always_inline bool sampled(__u64 size)
{
	if (exact || size >= sample_period)
		return true;
	if (size == 0)
		size = 1;
	return (__u64)bpf_get_prandom_u32() * sample_period < size << 32;
}

static __always_inline __u64 weight_of(__u64 size)
{
	if (exact || size >= sample_period)
		return WEIGHT_ONE;
	return (sample_period << WEIGHT_SHIFT) / (size ? size : 1);
}

/* scaled is what the bytes of a call of this weight stand for. */
static __always_inline __u64 scaled(__u64 size, __u64 weight)
{
	if (weight == WEIGHT_ONE)
		return size;
	return (size * weight) >> WEIGHT_SHIFT;
}

/* site_id names a site in one number. */
static __always_inline __u64 site_id(__u64 stack, __u32 entry)
{
	__u64 id = (stack ^ (entry + 1)) * 0x9e3779b97f4a7c15ULL;

	id ^= id >> 29;
	return id ? id : 1;
}

/* site_of finds a site or makes it. It is not inlined: what it puts on the program's stack
 * would lie there while stacks are walked, and kernels before 6.13 allow 512 bytes in all. */
static __noinline struct alloc_site *site_of(__u64 id, __u64 stack, __u32 entry)
{
	struct alloc_site *site = bpf_map_lookup_elem(&alloc_sites, &id);

	if (site)
		return site;
	struct alloc_site fresh = { .key = { .stack = stack, .entry = entry } };

	/* Another thread may have been first: then its entry is the one. */
	bpf_map_update_elem(&alloc_sites, &id, &fresh, BPF_NOEXIST);
	site = bpf_map_lookup_elem(&alloc_sites, &id);
	if (!site)
		count_loss(LOSS_SITES);
	return site;
}

/* share_of finds the current thread's share of a site or makes it; not inlined, as site_of. */
static __noinline struct alloc_share *share_of(__u64 site, __u32 slot)
{
	struct alloc_share_key key = { .site = site, .slot = slot };
	struct alloc_share *share = bpf_map_lookup_elem(&alloc_shares, &key);

	if (share)
		return share;
	struct alloc_share fresh = {};

	bpf_map_update_elem(&alloc_shares, &key, &fresh, BPF_NOEXIST);
	share = bpf_map_lookup_elem(&alloc_shares, &key);
	if (!share)
		count_loss(LOSS_SITES);
	return share;
}

/* add_to_site counts a call that made a block, for its site and the thread's share of it. */
static __always_inline void add_to_site(__u64 id, __u64 stack, __u32 entry, __u32 slot, __u64 round, __u64 size,
					__u64 weight)
{
	struct alloc_site *site = site_of(id, stack, entry);
	struct alloc_share *share;
	__u64 bytes = scaled(size, weight);

	if (!site)
		return;
	__sync_fetch_and_add(&site->allocs, weight);
	__sync_fetch_and_add(&site->alloc_bytes, bytes);
	__sync_fetch_and_add(&site->sampled, 1);
	share = share_of(id, slot);
	if (!share)
		return;
	share->allocs += weight;
	share->alloc_bytes += bytes;
	if (round == 0)
		return;
	if (!process_rounds) {
		add_to_thread_round(share, round, bytes, weight);
		return;
	}
	share = share_of(id, SLOT_NONE);
	if (share)
		add_to_process_round(share, round, bytes, weight);
}

/* follow begins to follow a block from its birth, or from where a resize has put it. */
static __always_inline void follow(__u64 address, const struct alloc_block *block, bool born)
{
	struct alloc_site *site;

	if (bpf_map_update_elem(&alloc_blocks, &address, block, BPF_ANY)) {
		count_loss(LOSS_BLOCKS);
		return;
	}
	site = bpf_map_lookup_elem(&alloc_sites, &block->site);
	if (!site)
		return;
	__sync_fetch_and_add(&site->live_blocks, block->weight);
	__sync_fetch_and_add(&site->live_bytes, scaled(block->size, block->weight));
	if (born && block->round)
		__sync_fetch_and_add(&site->round_born, block->weight);
}

/* part takes a block out of its site's live ones. */
static __always_inline void part(const struct alloc_block *block, struct alloc_site *site)
{
	__sync_fetch_and_sub(&site->live_blocks, block->weight);
	__sync_fetch_and_sub(&site->live_bytes, scaled(block->size, block->weight));
}

/* lifetime_bucket maps nanoseconds to a bucket: the power of two and the bits below it. */
static __always_inline __u32 lifetime_bucket(__u64 ns)
{
	const __u64 parts = 1 << LIFETIME_PARTS_SHIFT;
	__u32 power;

	if (ns < parts)
		return ns;
	/* size_class rounds up, the power below is wanted. */
	power = size_class(ns + 1) - 1;
	return (power - LIFETIME_PARTS_SHIFT + 1) * parts + ((ns >> (power - LIFETIME_PARTS_SHIFT)) & (parts - 1));
}

static __always_inline void note_lifetime(__u64 site, __u64 ns, __u64 weight)
{
	struct alloc_lifetimes *lifetimes = bpf_map_lookup_elem(&alloc_ages, &site);
	__u32 bucket = lifetime_bucket(ns);

	if (!lifetimes) {
		static const struct alloc_lifetimes fresh;

		bpf_map_update_elem(&alloc_ages, &site, &fresh, BPF_NOEXIST);
		lifetimes = bpf_map_lookup_elem(&alloc_ages, &site);
		if (!lifetimes) {
			count_loss(LOSS_SITES);
			return;
		}
	}
	if (bucket >= LIFETIME_BUCKETS)
		bucket = LIFETIME_BUCKETS - 1;
	__sync_fetch_and_add(&lifetimes->blocks[bucket], weight);
}

/*
 * settle ends the life of a block, if it was followed. It runs before the allocator releases
 * the block: no other thread can have been given the address meanwhile.
 */
static __noinline void settle(__u64 address, __u32 slot)
{
	struct alloc_block *found = bpf_map_lookup_elem(&alloc_blocks, &address);
	struct alloc_thread *t;
	struct alloc_site *site;
	struct alloc_block block;

	if (!found)
		return;
	block = *found;
	bpf_map_delete_elem(&alloc_blocks, &address);
	site = bpf_map_lookup_elem(&alloc_sites, &block.site);
	if (!site)
		return;
	part(&block, site);
	__sync_fetch_and_add(&site->frees, block.weight);
	__sync_fetch_and_add(&site->free_bytes, scaled(block.size, block.weight));
	if (block.slot != slot) {
		__sync_fetch_and_add(&site->remote_frees, block.weight);
		t = counters_of(slot);
		if (t)
			t->remote_frees += block.weight;
	}
	if (block.round && round_of(block.slot) == block.round)
		__sync_fetch_and_add(&site->round_freed, block.weight);
	note_lifetime(block.site, bpf_ktime_get_ns() - block.born_ns, block.weight);
}

#endif
