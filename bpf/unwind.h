/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The walk over a user stack by tables that user space has made of .eh_frame.
 *
 * The tables, from the outside in:
 *
 *   unwind_spaces[space]      which mappings a process has; replaced as a whole
 *   unwind_mappings[first …]  its executable mappings, by address
 *   unwind_buckets[…]         for each UNWIND_BUCKET bytes of a file's code, its rows
 *   unwind_rows[…]            what to do from an address on, up to the next row's
 *
 * A bucket's rows begin with one for its very first byte, so none looks into another. Rows
 * of the addresses that were looked up last are kept in unwind_cache.
 */
#ifndef MEMTRACE_UNWIND_H
#define MEMTRACE_UNWIND_H

#include "losses.h"

/* Sizes at compile time; the tracer sets those of the target at load. */
#define MAX_SPACES_DEFAULT 256
#define MAX_MAPPINGS_DEFAULT 4096
#define MAX_BUCKETS_DEFAULT 65536
#define MAX_ROWS_DEFAULT 262144

/* A space: 24 bits of index of its first mapping, 16 bits of their number, 24 bits of a
 * number that changes with every change, in one word that is stored in one piece. */
#define SPACE_COUNT_SHIFT 24
#define SPACE_GENERATION_SHIFT 40
#define SPACE_FIRST(space) ((__u32)(space) & 0xffffff)
#define SPACE_COUNT(space) ((__u32)((space) >> SPACE_COUNT_SHIFT) & 0xffff)

struct unwind_mapping {
	__u64 start;
	__u64 end;
	__u64 bias; /* an address minus the bias is an offset into the file's table */
	__u32 first_bucket;
	__u32 buckets; /* 0 = there is no table: code that was made at run time, for one */
};

/* A bucket: 32 bits of index of its first row, 32 bits of their number. */
#define BUCKET_COUNT_SHIFT 32

/* log2 of the bytes of code that share a bucket. */
#define UNWIND_BUCKET_SHIFT 8
#define UNWIND_BUCKET (1 << UNWIND_BUCKET_SHIFT)

/*
 * A row is 64 bits: 16 of its offset in the bucket, 4 of rule, 4 of the return address's slot
 * relative to the frame pointer's (signed words), 20 of the CFA's distance from its base and
 * 20 of the slot's distance below the CFA, both in words. Slot 0 = not saved.
 */
#define ROW_OFFSET(row) ((__u32)(row) & 0xffff)
#define ROW_RULE(row) ((__u32)((row) >> 16) & 0xf)
#define ROW_RETURN(row) (((__s64)(row) << 40) >> 60)
#define ROW_CFA(row) (((row) >> 24 & 0xfffff) * 8)
#define ROW_SLOT(row) (((row) >> 44) * 8)

/* What a row says. */
enum unwind_rule {
	RULE_NONE,	  /* nothing is known of this code */
	RULE_SP,	  /* CFA = stack pointer + distance */
	RULE_FP,	  /* CFA = frame pointer + distance */
	RULE_SP_LINK,	  /* arm64: the same two with the return address still in its register */
	RULE_FP_LINK,
	RULE_SP_RETURN,	  /* arm64: the slot holds the return address, the frame pointer is not saved */
	RULE_FP_RETURN,
	RULE_FP_INDIRECT, /* x86: CFA = word at frame pointer - distance; the frame pointer's is at it */
	RULE_PLT,	  /* x86: CFA = stack pointer + 8, or 16 behind the stub's push at distance / 8 */
	RULE_SIGNAL,	  /* the kernel's frame of a signal handler */
	RULE_END,	  /* the thread's first function */
	RULE_UNMAPPED,	  /* no known mapping holds the address; never in the tables */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_SPACES_DEFAULT);
	__type(key, __u32);
	__type(value, __u64);
} unwind_spaces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_MAPPINGS_DEFAULT);
	__type(key, __u32);
	__type(value, struct unwind_mapping);
} unwind_mappings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_BUCKETS_DEFAULT);
	__type(key, __u32);
	__type(value, __u64);
} unwind_buckets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_ROWS_DEFAULT);
	__type(key, __u32);
	__type(value, __u64);
} unwind_rows SEC(".maps");

/* Written by all processors without a lock: an entry counts only if both its words belong
 * together, see cached_row. */
#define CACHE_SHIFT 13

struct unwind_cached {
	__u64 check; /* the key, xor the row */
	__u64 row;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << CACHE_SHIFT);
	__type(key, __u32);
	__type(value, struct unwind_cached);
} unwind_cache SEC(".maps");

#define MIX 0x9e3779b97f4a7c15ULL

/* mapping_of finds the mapping of the space that holds the address. */
static __always_inline struct unwind_mapping *mapping_of(__u64 space, __u64 address)
{
	const int steps = 16; /* the number of mappings has 16 bits */
	__u32 low = SPACE_FIRST(space), count = SPACE_COUNT(space), half, middle;
	struct unwind_mapping *mapping;

	for (int i = 0; i < steps && count > 1; i++) {
		half = count / 2;
		middle = low + half;
		mapping = bpf_map_lookup_elem(&unwind_mappings, &middle);
		if (mapping && mapping->start <= address) {
			low = middle;
			count -= half;
		} else {
			count = half;
		}
	}
	mapping = bpf_map_lookup_elem(&unwind_mappings, &low);
	if (!mapping || count == 0 || address < mapping->start || address >= mapping->end)
		return NULL;
	return mapping;
}

/* row_in finds the row of an offset in a bucket. */
static __always_inline __u64 row_in(__u32 low, __u32 count, __u32 offset)
{
	__u32 half, middle;
	__u64 *row;

	for (int i = 0; i < UNWIND_BUCKET_SHIFT && count > 1; i++) {
		half = count / 2;
		middle = low + half;
		row = bpf_map_lookup_elem(&unwind_rows, &middle);
		if (row && ROW_OFFSET(*row) <= offset) {
			low = middle;
			count -= half;
		} else {
			count = half;
		}
	}
	row = bpf_map_lookup_elem(&unwind_rows, &low);
	return row ? *row : RULE_NONE << 16;
}

/* find_row searches the tables. It is global so that the verifier looks at it once, not at
 * every place that leads here. */
__noinline __u64 find_row(__u64 space, __u64 address)
{
	struct unwind_mapping *mapping = mapping_of(space, address);
	__u64 offset, *bucket;
	__u32 index;

	if (!mapping)
		return RULE_UNMAPPED << 16;
	offset = address - mapping->bias;
	if (offset >> UNWIND_BUCKET_SHIFT >= mapping->buckets)
		return RULE_NONE << 16;
	index = mapping->first_bucket + (__u32)(offset >> UNWIND_BUCKET_SHIFT);
	bucket = bpf_map_lookup_elem(&unwind_buckets, &index);
	if (!bucket)
		return RULE_NONE << 16;
	return row_in((__u32)*bucket, *bucket >> BUCKET_COUNT_SHIFT, offset & (UNWIND_BUCKET - 1));
}

/* cached_row returns the row of an address, from the cache if it is there. */
static __always_inline __u64 cached_row(__u64 space, __u64 salt, __u64 address)
{
	__u64 key = (address ^ salt) * MIX;
	__u32 place = key >> (64 - CACHE_SHIFT);
	struct unwind_cached *entry = bpf_map_lookup_elem(&unwind_cache, &place);
	__u64 row;

	if (!entry)
		return RULE_NONE << 16;
	row = *(volatile __u64 *)&entry->row;
	if ((*(volatile __u64 *)&entry->check ^ row) == key)
		return row;
	row = find_row(space, address);
	if (ROW_RULE(row) != RULE_UNMAPPED) {
		*(volatile __u64 *)&entry->check = key ^ row;
		*(volatile __u64 *)&entry->row = row;
	}
	return row;
}

#endif
