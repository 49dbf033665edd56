//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* See mmap.h. */
#include "mmap.h"
#include "stack.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before load: the system calls' numbers by memory_call, and the allocator's code. */
const volatile __u32 call_numbers[MEMORY_CALLS];
const volatile __u32 inside_count;
const volatile struct mmap_range inside[MAX_INSIDE];

/* Where the allocator keeps its mmap threshold; 0 until that is known. */
__u64 threshold_address;

/* The threshold when it was last read: a free that raises it gets its stack. */
__u64 last_threshold;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_THREADS_DEFAULT);
	__type(key, __u32);
	__type(value, struct mmap_thread);
} mmap_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 23);
} mmap_log SEC(".maps");

/* What the tracepoints of system calls hand over. */
struct memory_enter {
	__u64 common;
	__u32 number;
	__u32 pad;
	__u64 arguments[MEMORY_ARGUMENTS];
};

struct memory_exit {
	__u64 common;
	__u32 number;
	__u32 pad;
	__s64 result;
};

#define PROTECTION_NONE 0
#define PROTECTION_READ 1
#define PROTECTION_WRITE 2
#define FLAG_NORESERVE 0x4000

/* Results above this are errors, negated. */
#define LAST_ERROR (-4095LL)

static __always_inline enum memory_call call_of(__u32 number)
{
	for (__u32 call = CALL_MMAP; call < MEMORY_CALLS; call++) {
		if (call_numbers[call] == number)
			return call;
	}
	return CALL_NONE;
}

/*
 * from_allocator tells whether the C library's wrapper of the call, which has no frame of its
 * own, returns into one of the allocator's entries. A yes spares the stack; when its static
 * functions make the call the stack tells.
 */
static __always_inline bool from_allocator(void)
{
	const struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	__u64 address = 0;
#if defined(__TARGET_ARCH_arm64)
	read_register(&address, &regs->regs[30]);
#else
	__u64 sp;

	if (!read_register(&sp, &PT_REGS_SP(regs)) || bpf_probe_read_user(&address, sizeof(address), (void *)sp))
		return false;
#endif
	for (__u32 i = 0; i < MAX_INSIDE && i < inside_count; i++) {
		if (address >= inside[i].start && address < inside[i].end)
			return true;
	}
	return false;
}

/* of_heap tells whether a mapping is address space for one of glibc's heaps. */
static __always_inline bool of_heap(const struct mmap_thread *t)
{
	return t->arguments[2] == PROTECTION_NONE && t->arguments[3] & FLAG_NORESERVE;
}

/* raised tells whether the threshold is another than when it was last read. */
static __always_inline bool raised(__u64 *threshold)
{
	*threshold = 0;
	if (!threshold_address ||
	    bpf_probe_read_user(threshold, sizeof(*threshold), (void *)threshold_address) || *threshold == last_threshold)
		return false;
	last_threshold = *threshold;
	return true;
}

/* describe fills an event but for its stack and threshold. Not inlined, so that the event's
 * type is described for user space. */
shared_function void describe(struct mmap_event *e, struct mmap_thread *t)
{
	e->ns = bpf_ktime_get_ns();
	__builtin_memcpy(e->arguments, t->arguments, sizeof(e->arguments));
	e->call = t->call;
	e->allocators = t->allocators;
	e->pad = 0;
}

/* hand_over makes the event of the call that the thread is in. */
static __always_inline void hand_over(struct mmap_thread *t, __u32 slot, __s64 result)
{
	struct mmap_event *e;
	__u64 threshold = 0, stack = 0;
	bool risen = t->call == CALL_MUNMAP && raised(&threshold);

	if (!t->allocators || risen || (t->call == CALL_MMAP && of_heap(t)))
		stack = take_task_stack();
	e = bpf_ringbuf_reserve(&mmap_log, sizeof(*e), 0);
	if (!e) {
		count_loss(LOSS_EVENTS);
		return;
	}
	describe(e, t);
	e->stack = stack;
	e->threshold = threshold;
	e->result = result;
	e->slot = slot;
	bpf_ringbuf_submit(e, 0);
}

/* matters tells whether the call that begins is one to hand over. */
static __always_inline bool matters(const struct mmap_thread *t)
{
	switch (t->call) {
	case CALL_MPROTECT:
		return t->arguments[2] == (PROTECTION_READ | PROTECTION_WRITE);
	case CALL_MADVISE:
		return !t->trimming;
	default:
		return t->call != CALL_NONE;
	}
}

SEC("tracepoint/syscalls/sys_enter_mmap")
int mmap_enter(struct memory_enter *ctx)
{
	struct mmap_thread *t;
	__u32 slot;

	if (!filter_current())
		return 0;
	slot = current_slot();
	if (slot < SLOT_FIRST)
		return 0;
	t = bpf_map_lookup_elem(&mmap_threads, &slot);
	if (!t)
		return 0;
	t->hits++;
	/* Not all calls have six: the kernel refuses a program that reads past a call's own. */
	if (bpf_probe_read_kernel(t->arguments, sizeof(t->arguments), ctx->arguments)) {
		count_loss(LOSS_READS);
		return 0;
	}
	t->call = call_of(ctx->number);
	t->allocators = from_allocator();
	if (!matters(t)) {
		t->call = CALL_NONE;
	} else if (t->call == CALL_MUNMAP) {
		/* As soon as the call is made another thread may be given the addresses. */
		hand_over(t, slot, 0);
		t->call = CALL_NONE;
	}
	return 0;
}

SEC("tracepoint/syscalls/sys_exit_mmap")
int mmap_leave(struct memory_exit *ctx)
{
	struct mmap_thread *t;
	__u32 slot;

	if (!filter_current())
		return 0;
	slot = current_slot();
	t = bpf_map_lookup_elem(&mmap_threads, &slot);
	if (!t || t->call == CALL_NONE || slot < SLOT_FIRST)
		return 0;
	if (t->call == CALL_MMAP && of_heap(t) && !(ctx->result < 0 && ctx->result >= LAST_ERROR))
		t->heaps++;
	hand_over(t, slot, ctx->result);
	t->call = CALL_NONE;
	return 0;
}
