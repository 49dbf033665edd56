/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What becomes of a lock that was handed to a thread. If the thread next wakes others on it,
 * it held the lock until then, and its clocks tell how much of that time it was on a
 * processor or asleep; for the rest it was runnable. If it waits again first, another thread
 * had been faster: the handoff was futile.
 */
#ifndef MEMTRACE_LOCK_HOLD_H
#define MEMTRACE_LOCK_HOLD_H

/* cpu_clock is the current thread's time on a processor. */
static __always_inline __u64 cpu_clock(const struct lock_thread *t, __u64 now)
{
	return t->on_since_ns ? t->cpu_ns + now - t->on_since_ns : t->cpu_ns;
}

/* grant notes that the lock was handed to the current thread. */
static __always_inline void grant(struct lock_thread *t, __u64 address, __u64 now)
{
	struct lock_grant *g = &t->grants[t->grant_next & (GRANTS - 1)];

	t->grant_next++;
	g->address = address;
	g->since_ns = now;
	g->cpu_ns = cpu_clock(t, now);
	g->asleep_ns = t->asleep_ns;
}

/* granted finds the grant of a lock, NULL if there is none. */
static __always_inline struct lock_grant *granted(struct lock_thread *t, __u64 address)
{
	for (int i = 0; i < GRANTS; i++) {
		if (t->grants[i].address == address)
			return &t->grants[i];
	}
	return NULL;
}

/* waits_again: the current thread waits on the lock. It lost the lock to another thread if
 * it has done nothing else since it was woken; otherwise it had used it, without a wake. */
static __always_inline void waits_again(struct lock_thread *t, struct lock *lock, __u64 address)
{
	struct lock_grant *g = granted(t, address);

	if (!g)
		return;
	g->address = 0;
	if (t->last_wait == address)
		__sync_fetch_and_add(&lock->futile, 1);
}

/* hands_on: the current thread wakes others on the lock. */
static __noinline void hands_on(struct lock_thread *t, struct lock *lock, __u64 address, __u64 now)
{
	struct lock_grant *g;

	if (!t || !lock || !address)
		return;
	g = granted(t, address);
	if (!g)
		return;
	g->address = 0;
	__sync_fetch_and_add(&lock->effective, 1);
	__sync_fetch_and_add(&lock->holds, 1);
	__sync_fetch_and_add(&lock->hold_ns, now - g->since_ns);
	__sync_fetch_and_add(&lock->hold_cpu_ns, cpu_clock(t, now) - g->cpu_ns);
	__sync_fetch_and_add(&lock->hold_asleep_ns, t->asleep_ns - g->asleep_ns);
	count_time(lock->hold_times, now - g->since_ns);
}

#endif
