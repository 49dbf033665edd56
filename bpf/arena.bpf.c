//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* See arena.h. */
#include "arena.h"
#include "lock.h"
#include "mmap.h"
#include "stack.h"
#include "resident.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_THREADS_DEFAULT);
	__type(key, __u32);
	__type(value, struct arena_thread);
} arena_threads SEC(".maps");

/* The mmap family's. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_THREADS_DEFAULT);
	__type(key, __u32);
	__type(value, struct mmap_thread);
} mmap_threads SEC(".maps");

/* The lock family's, where that is on. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_THREADS_DEFAULT);
	__type(key, __u32);
	__type(value, struct lock_thread);
} lock_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} arena_log SEC(".maps");

/* hand_over copies an event into the log. */
shared_function void hand_over(struct arena_event *from)
{
	if (bpf_ringbuf_output(&arena_log, from, sizeof(*from), 0))
		count_loss(LOSS_EVENTS);
}

/* own returns the current thread's record, and its slot. */
static __always_inline struct arena_thread *own(__u32 *slot)
{
	if (!filter_current())
		return NULL;
	*slot = current_slot();
	if (*slot < SLOT_FIRST)
		return NULL;
	return bpf_map_lookup_elem(&arena_threads, slot);
}

/* woken is how many wake calls of the thread found somebody, so far. */
static __always_inline __u64 woken(__u32 slot)
{
	struct lock_thread *t = bpf_map_lookup_elem(&lock_threads, &slot);

	return t ? t->wakes - t->empty_wakes : 0;
}

static __always_inline __u64 heaps(__u32 slot)
{
	struct mmap_thread *t = bpf_map_lookup_elem(&mmap_threads, &slot);

	return t ? t->heaps : 0;
}

static __always_inline void mark_trimming(__u32 slot, bool trimming)
{
	struct mmap_thread *t = bpf_map_lookup_elem(&mmap_threads, &slot);

	if (t)
		t->trimming = trimming;
}

/* arena_get2(size, avoided arena) looks for an arena, and makes one if there may be more. */
SEC("uprobe")
int arena_get(struct pt_regs *ctx)
{
	struct arena_thread *t;
	__u32 slot;

	t = own(&slot);
	if (!t)
		return 0;
	t->hits++;
	t->given.stack = take_stack(ctx);
	t->given.avoided = PT_REGS_PARM2(ctx);
	t->given.made = heaps(slot);
	t->given.slot = slot;
	t->given.kind = ARENA_GIVEN;
	t->given.start_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("uretprobe")
int arena_given(struct pt_regs *ctx)
{
	struct arena_thread *t;
	__u32 slot;

	t = own(&slot);
	if (!t || !t->given.start_ns)
		return 0;
	t->given.end_ns = bpf_ktime_get_ns();
	t->given.arena = PT_REGS_RC(ctx);
	t->given.made = heaps(slot) - t->given.made;
	hand_over(&t->given);
	t->given.start_ns = 0;
	return 0;
}

SEC("uprobe")
int arena_trim(struct pt_regs *ctx)
{
	struct arena_thread *t;
	__u32 slot;

	t = own(&slot);
	if (!t)
		return 0;
	t->hits++;
	t->trim.stack = take_caller_stack(ctx);
	t->trim.pages_before = resident_pages();
	t->trim.woken = woken(slot);
	t->trim.slot = slot;
	t->trim.kind = ARENA_TRIM;
	mark_trimming(slot, true);
	t->trim.start_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("uretprobe")
int arena_trimmed(struct pt_regs *ctx)
{
	struct arena_thread *t;
	__u32 slot;

	t = own(&slot);
	if (!t || !t->trim.start_ns)
		return 0;
	t->trim.end_ns = bpf_ktime_get_ns();
	mark_trimming(slot, false);
	t->trim.result = (__u32)PT_REGS_RC(ctx);
	t->trim.pages_after = resident_pages();
	t->trim.woken = woken(slot) - t->trim.woken;
	hand_over(&t->trim);
	t->trim.start_ns = 0;
	return 0;
}
