/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Where threads wait, and from where they wake others. */
#ifndef MEMTRACE_LOCK_STACK_H
#define MEMTRACE_LOCK_STACK_H

/* The first calls at a lock have their stack taken; of later ones a long wait always has,
 * a short one in proportion to its length, a wake one time in so many. */
#define FIRST_STACKS 32
#define LONG_WAIT_NS 65536
#define WAKES_PER_STACK 16

/* add_stack counts a call, of a weight in units of 1 / STACK_WEIGHT_ONE, at its place. */
static __noinline void add_stack(struct lock_thread *t, __u64 address, __u64 role_and_weight, __u64 stack, __u64 ns)
{
	struct lock_stack_key key = { .address = address, .stack = stack, .role = role_and_weight & 1 };
	__u64 weight = role_and_weight >> 1;
	struct lock_stack *place;

	if (!t)
		return;
	key.pid = t->pid;
	place = bpf_map_lookup_elem(&lock_stacks, &key);
	if (!place) {
		struct lock_stack fresh = {};

		bpf_map_update_elem(&lock_stacks, &key, &fresh, BPF_NOEXIST);
		place = bpf_map_lookup_elem(&lock_stacks, &key);
		if (!place) {
			count_loss(LOSS_LOCKS);
			return;
		}
	}
	__sync_fetch_and_add(&place->calls, weight);
	__sync_fetch_and_add(&place->wait_ns, (ns * weight) >> STACK_WEIGHT_SHIFT);
}

/* wait_weight decides whether a finished wait's stack is wanted: 0 = no, else what it stands
 * for. */
static __always_inline __u64 wait_weight(__u64 ns)
{
	if (exact || ns >= LONG_WAIT_NS)
		return STACK_WEIGHT_ONE;
	if (bpf_get_prandom_u32() % LONG_WAIT_NS >= ns)
		return 0;
	return STACK_WEIGHT_ONE * LONG_WAIT_NS / (ns ? ns : 1);
}

/* want_wait asks for a finished wait to be given to its place. */
static __always_inline void want_wait(struct lock_thread *t, __u64 address, __u64 ns)
{
	__u64 weight = t->stack ? STACK_WEIGHT_ONE : wait_weight(ns);

	if (!weight)
		return;
	t->place.address = address;
	t->place.stack = t->stack;
	t->place.ns = ns;
	t->place.role_and_weight = weight << 1 | ROLE_WAITER;
}

/* want_wake asks the same for a wake that woke somebody. */
static __always_inline void want_wake(struct lock_thread *t, __u64 woken_before)
{
	__u64 weight = STACK_WEIGHT_ONE;

	if (!exact && woken_before >= FIRST_STACKS) {
		if (bpf_get_prandom_u32() % WAKES_PER_STACK)
			return;
		weight *= WAKES_PER_STACK;
	}
	t->place.address = t->address;
	t->place.stack = 0;
	t->place.ns = 0;
	t->place.role_and_weight = weight << 1 | ROLE_WAKER;
}

/* settle_place does what was asked for. Programs call it last and themselves: a walk needs
 * most of the frames that the kernel allows. */
static __always_inline void settle_place(struct lock_thread *t, bool here)
{
	if (!t->place.role_and_weight)
		return;
	if (here && !t->place.stack)
		t->place.stack = take_task_stack();
	if (here || t->place.stack)
		add_stack(t, t->place.address, t->place.role_and_weight, t->place.stack, t->place.ns);
	t->place.role_and_weight = 0;
}

#endif
