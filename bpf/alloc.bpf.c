//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Allocations: one program for each kind of entry counts the call for its thread; a sampled
 * call (every call in exact mode) takes its stack, and its return tells the block's address,
 * which is followed to its release.
 */
#include "alloc.h"
#include "course.h"
#include "stack.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before load. */
const volatile bool exact; /* every call is sampled, failed calls are left out */
const volatile enum returns returns_seen;
const volatile __u64 sample_period = 65536; /* bytes */
const volatile bool chunk_headers; /* glibc's: the size stands before the block */
const volatile bool zero_resize_frees; /* realloc(p, 0) releases p */
const volatile bool nests_anywhere; /* any entry may enter another */
const volatile bool process_rounds; /* a round is the whole process's, not a thread's */
const volatile __u32 inside_count;
const volatile struct address_range inside[MAX_INSIDE];

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_THREADS_DEFAULT);
	__type(key, __u32);
	__type(value, struct alloc_thread);
} alloc_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct alloc_site);
} alloc_sites SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct alloc_share_key);
	__type(value, struct alloc_share);
} alloc_shares SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 20);
	__type(key, __u64);
	__type(value, struct alloc_block);
} alloc_blocks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct alloc_lifetimes);
} alloc_ages SEC(".maps");

/* Hits on each processor, for the bound of the overhead: read often, with one look. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} alloc_hits SEC(".maps");

#include "power.h"
#include "alloc_count.h"
#include "alloc_round.h"
#include "alloc_site.h"
#include "alloc_nesting.h"
#include "alloc_call.h"

SEC("uprobe")
int alloc_malloc(struct pt_regs *ctx)
{
	return entered_new(ctx, OPERATION_MALLOC, PT_REGS_PARM1(ctx), 0);
}

SEC("uprobe")
int alloc_calloc(struct pt_regs *ctx)
{
	return entered_new(ctx, OPERATION_CALLOC, product(PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx)), 0);
}

SEC("uprobe")
int alloc_realloc(struct pt_regs *ctx)
{
	return entered_resize(ctx, OPERATION_REALLOC, PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx));
}

SEC("uprobe")
int alloc_reallocarray(struct pt_regs *ctx)
{
	return entered_resize(ctx, OPERATION_REALLOCARRAY, PT_REGS_PARM1(ctx),
			      product(PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx)));
}

SEC("uprobe")
int alloc_posix_memalign(struct pt_regs *ctx)
{
	return entered_new(ctx, OPERATION_POSIX_MEMALIGN, PT_REGS_PARM3(ctx), PT_REGS_PARM1(ctx));
}

SEC("uprobe")
int alloc_memalign(struct pt_regs *ctx)
{
	return entered_new(ctx, OPERATION_MEMALIGN, PT_REGS_PARM2(ctx), 0);
}

SEC("uprobe")
int alloc_new_aligned(struct pt_regs *ctx)
{
	return entered_new(ctx, OPERATION_NEW_ALIGNED, PT_REGS_PARM1(ctx), 0);
}

SEC("uprobe")
int alloc_free(struct pt_regs *ctx)
{
	return entered_free(ctx, PT_REGS_PARM1(ctx));
}

/* For kernels without sessions: a return probe at every entry that makes or resizes blocks. */
SEC("uretprobe")
int alloc_return(struct pt_regs *ctx)
{
	return returned(ctx);
}
