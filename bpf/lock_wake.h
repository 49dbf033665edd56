/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A thread's wake: its call, whom it wakes, and its return. */
#ifndef MEMTRACE_LOCK_WAKE_H
#define MEMTRACE_LOCK_WAKE_H

#define PF_EXITING 0x4

static __always_inline bool wakes(const struct lock_thread *t)
{
	return t->does == FUTEX_DOES_WAKE || t->does == FUTEX_DOES_UNLOCK || t->does == FUTEX_DOES_REQUEUE;
}

/* begin_wake: a thread calls to wake others, or to move them. */
static __noinline void begin_wake(struct lock_thread *t, __u32 slot, struct futex_call *call, __u64 now)
{
	struct lock *lock;

	if (!t || !call)
		return;
	t->address = call->address;
	t->second = call->second;
	t->count = call->count;
	t->does = call->does;
	t->last_wait = 0;
	t->woke = 0;
	chain_wakes(t, slot, now);
	lock = lock_of(t->pid, call->address);
	if (!lock)
		return;
	hands_on(t, lock, call->address, now);
	if (call->second && call->does == FUTEX_DOES_WAKE)
		hands_on(t, lock_of(t->pid, call->second), call->second, now);
	if ((lock->seen & call->seen) != call->seen)
		__sync_fetch_and_or((__u32 *)&lock->seen, call->seen);
}

/* handed_on tells which lock a waker hands to a sleeper. */
static __always_inline __u64 handed_on(const struct lock_thread *waker, const struct lock_thread *t)
{
	__u64 at = asleep_at(t);

	if (at == waker->address || at == waker->second)
		return at;
	if (t->second && t->second == waker->address)
		return t->second;
	/* It had been moved to another lock, or waits for several. */
	return waker->address;
}

/* wakes_sleeper: the waker, which runs, wakes a thread out of its wait. */
static __noinline void wakes_sleeper(struct lock_thread *waker, __u32 waker_slot, struct lock_thread *t, __u32 slot)
{
	__u64 now = bpf_ktime_get_ns(), on;
	struct lock *lock;

	if (!waker || !t || !waits(t) || t->woken_ns || t->interrupted)
		return;
	on = handed_on(waker, t);
	waker->woke++;
	t->woken_on = on;
	t->waker = waker_slot;
	t->woken_ns = now;
	chain_hands(waker, t, slot, on, now);
	lock = lock_of(t->pid, on);
	if (!lock)
		return;
	__sync_fetch_and_add(&lock->now.handoffs, 1);
	__sync_fetch_and_or(&lock->now.wakees, 1ULL << (slot % 64));
	wakes_up(t, on, now);
}

/* exit_wakes: a thread that ends wakes those that wait for it, without a call. */
static __noinline void exit_wakes(struct lock_thread *t)
{
	struct lock *lock;

	if (!t || !waits(t) || t->woken_ns)
		return;
	lock = lock_of(t->pid, t->address);
	if (lock)
		__sync_fetch_and_or((__u32 *)&lock->seen, SEEN_EXIT_WAKE);
}

/* move_sleepers: a requeue has moved so many from one lock to the other. */
static __always_inline void move_sleepers(struct lock_thread *t, struct lock *lock, __u64 count, __u64 now)
{
	struct lock *other = lock_of(t->pid, t->second);

	lock->requeued_to = t->second;
	lock->requeued_ns = now;
	__sync_fetch_and_add(&lock->requeued, count);
	left(lock, count, now);
	if (other)
		joined(other, count, now);
}

/* end_wake: the call returns how many it has woken, or moved. */
static __noinline void end_wake(struct lock_thread *t, __u32 slot, __s64 result, __u64 now)
{
	__u64 woken = t ? t->woke : 0, before;
	struct lock_share *share;
	struct lock *lock;

	if (!t)
		return;
	lock = lock_of(t->pid, t->address);
	if (t->does != FUTEX_DOES_UNLOCK)
		woken = result;
	if (t->does == FUTEX_DOES_REQUEUE) {
		t->requeues++;
		if (woken > t->count)
			woken = t->count;
		if (lock)
			__sync_fetch_and_add(&lock->requeues, 1);
		if (lock && result > woken)
			move_sleepers(t, lock, result - woken, now);
	} else {
		t->wakes++;
		if (lock)
			__sync_fetch_and_add(&lock->wakes, 1);
	}
	if (!woken)
		keep_chain(t);
	if (result == 0 && t->does == FUTEX_DOES_WAKE) {
		t->empty_wakes++;
		if (lock)
			__sync_fetch_and_add(&lock->empty_wakes, 1);
		end_period(lock, now);
	}
	if (!woken || !lock)
		return;
	before = __sync_fetch_and_add(&lock->woken, woken);
	share = share_of(t->address, slot);
	if (share)
		share->wakes++;
	want_wake(t, before);
}

#endif
