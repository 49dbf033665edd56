/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One lock: who sleeps on it, and its busy periods. The time that threads spent asleep is
 * kept as an area: each takes the time at which it comes from it, and adds that at which it
 * goes. With those who are there counted up to now it is the integral of the queue's length,
 * and no two writers need to agree.
 */
#ifndef MEMTRACE_LOCK_WORD_H
#define MEMTRACE_LOCK_WORD_H

/* A busy period is like a convoy from so many wakees on, each woken so often, with so many
 * asleep on average. */
#define CONVOY_WAKEES 3
#define CONVOY_TURNS 8
#define CONVOY_SLEEPERS 2

/* renew forgets what a lock's state was before a gap. */
static __always_inline void renew(struct lock *lock)
{
	__u32 old = lock->epoch, current = epoch;

	if (__sync_val_compare_and_swap(&lock->epoch, old, current) != old)
		return;
	lock->sleepers = 0;
	lock->sleeper_area = 0;
	lock->now.start_ns = 0;
	lock->now.handoffs = 0;
	lock->now.wakees = 0;
}

/* lock_of finds a lock or makes it; NULL when there is no room, which is counted. */
static __noinline struct lock *lock_of(__u32 pid, __u64 address)
{
	struct lock_key key = { .address = address, .pid = pid };
	struct lock *lock = bpf_map_lookup_elem(&locks, &key);
	static const struct lock fresh;

	if (!lock) {
		/* Another thread may have been first: then its entry is the one. */
		bpf_map_update_elem(&locks, &key, &fresh, BPF_NOEXIST);
		lock = bpf_map_lookup_elem(&locks, &key);
		if (!lock) {
			count_loss(LOSS_LOCKS);
			return NULL;
		}
	}
	if (lock->epoch != epoch)
		renew(lock);
	return lock;
}

/* share_of finds the current thread's share of a lock or makes it. */
static __noinline struct lock_share *share_of(__u64 address, __u32 slot)
{
	struct lock_share_key key = { .address = address, .slot = slot };
	struct lock_share *share = bpf_map_lookup_elem(&lock_shares, &key);

	if (share)
		return share;
	struct lock_share fresh = {};

	bpf_map_update_elem(&lock_shares, &key, &fresh, BPF_NOEXIST);
	share = bpf_map_lookup_elem(&lock_shares, &key);
	if (!share)
		count_loss(LOSS_LOCKS);
	return share;
}

/* sleeper_time is the sum of the times that threads have slept on the lock until now. */
static __always_inline __u64 sleeper_time(const struct lock *lock, __u64 now)
{
	return lock->sleeper_area + lock->sleepers * now;
}

static __always_inline __u32 bits_set(__u64 word)
{
	word -= (word >> 1) & 0x5555555555555555ULL;
	word = (word & 0x3333333333333333ULL) + ((word >> 2) & 0x3333333333333333ULL);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return (word * 0x0101010101010101ULL) >> 56;
}

/* end_period ends the lock's busy period, if it is in one. */
static __noinline void end_period(struct lock *lock, __u64 now)
{
	__u64 start, handoffs, wakees, asleep, members;

	if (!lock)
		return;
	start = __sync_lock_test_and_set(&lock->now.start_ns, 0);
	if (!start)
		return;
	/* Another processor may have begun it after this one has read the clock. */
	if (now < start)
		now = start;
	handoffs = __sync_lock_test_and_set(&lock->now.handoffs, 0);
	wakees = __sync_lock_test_and_set(&lock->now.wakees, 0);
	asleep = sleeper_time(lock, now) - lock->period_area;
	members = bits_set(wakees);
	__sync_fetch_and_add(&lock->periods, 1);
	__sync_fetch_and_add(&lock->period_ns, now - start);
	if (members >= CONVOY_WAKEES && handoffs >= CONVOY_TURNS * members && asleep >= CONVOY_SLEEPERS * (now - start))
		__sync_fetch_and_add(&lock->convoy_ns, now - start);
	if (now - start <= lock->longest.end_ns - lock->longest.start_ns)
		return;
	lock->longest.start_ns = start;
	lock->longest.end_ns = now;
	lock->longest.handoffs = handoffs;
	lock->longest.wakees = wakees;
	lock->longest.sleeper_ns = asleep;
}

/* joined: threads begin to sleep on the lock. */
static __always_inline void joined(struct lock *lock, __u64 count, __u64 now)
{
	__u64 length = __sync_fetch_and_add(&lock->sleepers, count) + count;

	__sync_fetch_and_sub(&lock->sleeper_area, count * now);
	if ((__s64)length > (__s64)lock->sleepers_max)
		lock->sleepers_max = length;
	if (__sync_val_compare_and_swap(&lock->now.start_ns, 0, now) == 0)
		lock->period_area = sleeper_time(lock, now);
}

/* left: they sleep no longer. */
static __always_inline void left(struct lock *lock, __u64 count, __u64 now)
{
	__s64 length = __sync_fetch_and_sub(&lock->sleepers, count) - count;

	__sync_fetch_and_add(&lock->sleeper_area, count * now);
	if (length <= 0)
		end_period(lock, now);
}

#endif
