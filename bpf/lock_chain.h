/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Relay chains follow threads, not addresses: a thread that was woken by a handoff, and whose
 * next futex call wakes another, carries the chain on. So a fair lock that gives each waiter
 * a word of its own shows as a chain, though never as one busy word.
 */
#ifndef MEMTRACE_LOCK_CHAIN_H
#define MEMTRACE_LOCK_CHAIN_H

/* keep_chain notes a chain that has ended, if it is the longest of its lock. */
static __noinline void keep_chain(struct lock_thread *t)
{
	struct lock *lock;

	if (!t || t->chain.length < 2)
		return;
	lock = lock_of(t->pid, t->chain_on);
	if (lock && t->chain.length > lock->chain.length)
		lock->chain = t->chain;
}

/* chain_waits: a thread's next futex call is a wait: the chain that led to it has ended. */
static __always_inline void chain_waits(struct lock_thread *t)
{
	if (!t->relayed)
		return;
	t->relayed = 0;
	keep_chain(t);
}

/* chain_wakes: it is a wake: the chain goes on, or begins with this thread. */
static __always_inline void chain_wakes(struct lock_thread *t, __u32 slot, __u64 now)
{
	if (t->relayed) {
		t->relayed = 0;
		return;
	}
	t->chain.length = 0;
	t->chain.start_ns = now;
	t->chain.end_ns = now;
	t->chain.slots[0] = slot;
	t->chain.gaps_ns[0] = 0;
}

/* chain_hands lengthens the waker's chain by the thread that it has woken. */
static __always_inline void chain_hands(struct lock_thread *waker, struct lock_thread *t, __u32 slot, __u64 on, __u64 now)
{
	__u64 gap = now - waker->chain.end_ns;
	__u32 place = (waker->chain.length + 1) & (CHAIN_SLOTS - 1);

	t->chain = waker->chain;
	t->chain.length++;
	t->chain.end_ns = now;
	t->chain.slots[place] = slot;
	t->chain.gaps_ns[place] = gap < GAP_MAX_NS ? gap : GAP_MAX_NS;
	t->chain_on = on;
}

#endif
