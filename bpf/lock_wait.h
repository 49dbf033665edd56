/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A thread's wait, from its call to its return. */
#ifndef MEMTRACE_LOCK_WAIT_H
#define MEMTRACE_LOCK_WAIT_H

/* What the calls return. The last ones are seen at the exit of a call that a signal has
 * interrupted; the thread then makes it again, or returns EINTR. */
#define EINTR 4
#define EAGAIN 11
#define ETIMEDOUT 110
#define ERESTARTSYS 512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516

/* How an interrupted wait goes on, if it does: by restart_syscall, or by the same call. A
 * handler may be in between; a call of the same kind that was not made again but made anew,
 * by a program that got EINTR, cannot be told from it, and counts as the same wait. */
#define RESUMES_APART 1
#define RESUMES_AS_CALLED 2

static __always_inline bool waits(const struct lock_thread *t)
{
	return t->does == FUTEX_DOES_WAIT || t->does == FUTEX_DOES_LOCK;
}

/* asleep_at returns where a sleeper is, which has perhaps been moved since it came. */
static __always_inline __u64 asleep_at(const struct lock_thread *t)
{
	struct lock *lock = lock_of(t->pid, t->address);

	if (lock && lock->requeued_ns > t->entered_ns)
		return lock->requeued_to;
	return t->address;
}

/* falls_asleep: the thread leaves the processor in its wait. */
static __noinline void falls_asleep(struct lock_thread *t, __u64 now)
{
	struct lock *lock;

	if (!t || !waits(t) || t->queued || t->woken_ns)
		return;
	t->asleep = 1;
	/* Who waits for several words stands in no queue. */
	lock = t->waitv ? NULL : lock_of(t->pid, t->address);
	if (!lock)
		return;
	t->queued = 1;
	joined(lock, 1, now);
}

/* wakes_up: it is not among the sleepers any more. Its waker and the thread itself may both
 * come here. */
static __noinline void wakes_up(struct lock_thread *t, __u64 on, __u64 now)
{
	struct lock *lock;

	if (!t || !__sync_lock_test_and_set(&t->queued, 0))
		return;
	lock = lock_of(t->pid, on);
	if (lock)
		left(lock, 1, now);
}

/* count_handoff: the wait has ended because another thread has handed the lock over. */
static __always_inline void count_handoff(struct lock_thread *t, struct lock *lock, struct lock_share *share, __u64 now)
{
	__sync_fetch_and_add(&lock->handoffs, 1);
	if (t->on_cpu_ns >= t->woken_ns)
		count_time(lock->handoff_times, t->on_cpu_ns - t->woken_ns);
	if (share)
		share->handoffs++;
	t->relayed = 1;
	grant(t, t->woken_on, now);
}

/* count_wait counts a wait that is over, from since until now, at the lock. */
static __noinline void count_wait(struct lock_thread *t, __u64 address, __u64 since, __u64 now)
{
	struct lock *lock = t ? lock_of(t->pid, address) : NULL;
	__u64 ns = now - since;

	if (!lock)
		return;
	__sync_fetch_and_add(&lock->waits, 1);
	__sync_fetch_and_add(&lock->wait_ns, ns);
	if (ns > lock->wait_max_ns)
		lock->wait_max_ns = ns;
	count_time(lock->wait_times, ns);
	want_wait(t, address, ns);
}

/* finish_wait ends a wait that has slept, or was woken before it could. */
static __noinline void finish_wait(struct lock_thread *t, __u32 slot, __s64 result, __u64 now)
{
	__u64 since, on;
	struct lock_share *share;
	struct lock *lock;

	if (!t)
		return;
	since = t->entered_ns;
	on = t->woken_on ? t->woken_on : asleep_at(t);
	wakes_up(t, on, now);
	t->waits++;
	if (t->asleep)
		t->slept++;
	if (on != t->address) {
		/* It was moved: the first part of the wait was for the other lock. */
		lock = lock_of(t->pid, t->address);
		if (lock && !t->waitv) {
			if (lock->requeued_ns > since)
				since = lock->requeued_ns < now ? lock->requeued_ns : now;
			count_wait(t, t->address, t->entered_ns, since);
		}
	}
	count_wait(t, on, since, now);
	lock = lock_of(t->pid, on);
	share = share_of(on, slot);
	if (share) {
		share->waits++;
		share->wait_ns += now - since;
	}
	if (!lock)
		return;
	if (result == -ETIMEDOUT) {
		t->timeouts++;
		__sync_fetch_and_add(&lock->timeouts, 1);
	} else if (result < 0) {
		__sync_fetch_and_add(&lock->interrupted, 1);
	} else if (t->waker) {
		count_handoff(t, lock, share, now);
	}
}

static __always_inline bool restarts(__s64 result)
{
	return result == -ERESTARTSYS || result == -ERESTARTNOINTR || result == -ERESTARTNOHAND || result == -ERESTART_RESTARTBLOCK;
}

/* end_wait: a waiting call returns. */
static __noinline void end_wait(struct lock_thread *t, __u32 slot, __s64 result, __u64 now)
{
	struct lock *lock;

	if (!t)
		return;
	if (restarts(result)) {
		wakes_up(t, asleep_at(t), now);
		t->interrupted = result == -ERESTART_RESTARTBLOCK ? RESUMES_APART : RESUMES_AS_CALLED;
		return;
	}
	if (t->waitv && result >= 0)
		t->woken_on = word_in_array(t->count, result);
	if (result == -EAGAIN && !t->asleep) {
		t->eagain++;
		lock = lock_of(t->pid, t->address);
		if (lock)
			__sync_fetch_and_add(&lock->eagain, 1);
	} else if (t->asleep || result == -ETIMEDOUT || (result >= 0 && t->does == FUTEX_DOES_WAIT)) {
		finish_wait(t, slot, result, now);
	}
	t->does = FUTEX_DOES_NOTHING;
}

/* begin_wait: a thread calls to wait. */
static __noinline void begin_wait(struct lock_thread *t, struct futex_call *call, __u64 now)
{
	struct lock *lock;

	if (!t || !call)
		return;
	t->address = call->address;
	t->second = call->second;
	t->count = call->count;
	t->waitv = call->seen & SEEN_WAITV;
	t->does = call->does;
	t->entered_ns = now;
	t->asleep = 0;
	t->queued = 0;
	t->woken_ns = 0;
	t->woken_on = 0;
	t->on_cpu_ns = 0;
	t->waker = 0;
	t->stack = 0;
	t->want_stack = 0;
	chain_waits(t);
	lock = lock_of(t->pid, call->address);
	if (!lock)
		return;
	if (t->last_wait != call->address)
		__sync_fetch_and_add(&lock->acquisitions, 1);
	waits_again(t, lock, call->address);
	t->last_wait = call->address;
	lock->value = call->value;
	if ((lock->seen & call->seen) != call->seen)
		__sync_fetch_and_or((__u32 *)&lock->seen, call->seen);
	t->want_stack = exact || lock->waits + lock->eagain < FIRST_STACKS;
}

#endif
