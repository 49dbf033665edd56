/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a futex call does, by its number and arguments, in both families of system calls. */
#ifndef MEMTRACE_LOCK_CALL_H
#define MEMTRACE_LOCK_CALL_H

#include <linux/futex.h>

#if defined(__TARGET_ARCH_arm64)
#define NR_FUTEX 98
#else
#define NR_FUTEX 202
#endif
#define NR_FUTEX_WAITV 449
#define NR_FUTEX_WAKE 454
#define NR_FUTEX_WAIT 455
#define NR_FUTEX_REQUEUE 456

#define ARGUMENTS 6

/* A call, decoded. */
struct futex_call {
	__u64 address;
	__u64 second;
	__u64 count; /* as in struct lock_thread */
	__u64 value;
	__u32 does;
	__u32 seen; /* enum lock_seen */
};

/* One element of the array that futex_waitv and futex_requeue are given. */
struct futex_word {
	__u64 value;
	__u64 address;
	__u32 flags;
	__u32 reserved;
};

static __always_inline __u64 word_in_array(__u64 array, __u64 index)
{
	struct futex_word word = {};

	if (bpf_probe_read_user(&word, sizeof(word), (void *)(array + index * sizeof(word))))
		count_loss(LOSS_READS);
	return word.address;
}

static __always_inline __u32 seen_waiting(__u32 value, __u64 bits, __u64 timeout)
{
	__u32 seen = value == 0 ? SEEN_WAIT_ZERO : value == 1 ? SEEN_WAIT_ONE : value == 2 ? SEEN_WAIT_TWO : SEEN_WAIT_OTHER;

	if ((__u32)bits != FUTEX_BITSET_MATCH_ANY)
		seen |= SEEN_BITSET;
	return timeout ? seen | SEEN_TIMEOUT : seen;
}

/* decode_operation decodes the call futex(address, operation, value, timeout, second, value3). */
static __always_inline void decode_operation(struct futex_call *call, const __u64 *a)
{
	__u32 operation = (__u32)a[1] & FUTEX_CMD_MASK;
	__u64 bits = FUTEX_BITSET_MATCH_ANY;

	call->address = a[0];
	call->value = (__u32)a[2];
	switch (operation) {
	case FUTEX_WAIT_BITSET:
		bits = a[5];
		/* fall through */
	case FUTEX_WAIT:
	case FUTEX_WAIT_REQUEUE_PI:
		call->does = FUTEX_DOES_WAIT;
		call->seen = seen_waiting(call->value, bits, a[3]);
		if (operation == FUTEX_WAIT_REQUEUE_PI)
			call->second = a[4];
		break;
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		call->does = FUTEX_DOES_LOCK;
		call->seen = SEEN_PI;
		break;
	case FUTEX_UNLOCK_PI:
		call->does = FUTEX_DOES_UNLOCK;
		call->seen = SEEN_PI;
		break;
	case FUTEX_WAKE_OP:
		call->second = a[4];
		call->seen = SEEN_WAKE_OP;
		/* fall through */
	case FUTEX_WAKE:
	case FUTEX_WAKE_BITSET:
		call->does = FUTEX_DOES_WAKE;
		if ((__u32)a[2] > 1)
			call->seen |= SEEN_WAKE_MANY;
		break;
	case FUTEX_REQUEUE:
	case FUTEX_CMP_REQUEUE:
	case FUTEX_CMP_REQUEUE_PI:
		call->does = FUTEX_DOES_REQUEUE;
		call->seen = SEEN_REQUEUE;
		call->second = a[4];
		call->count = (__u32)a[2];
		break;
	}
}

/* decode decodes the call of that number; what it does stays FUTEX_DOES_NOTHING when it is
 * none that waits or wakes. */
static __noinline void decode(struct futex_call *call, const __u64 *a, __u32 number)
{
	if (!call || !a)
		return;
	switch (number) {
	case NR_FUTEX:
		decode_operation(call, a);
		break;
	case NR_FUTEX_WAIT: /* (address, value, bits, flags, timeout, clock) */
		call->address = a[0];
		call->value = a[1];
		call->does = FUTEX_DOES_WAIT;
		call->seen = seen_waiting(a[1], a[2], a[4]);
		break;
	case NR_FUTEX_WAITV: /* (array, length, flags, timeout, clock) */
		call->address = word_in_array(a[0], 0);
		call->count = a[0];
		call->does = FUTEX_DOES_WAIT;
		call->seen = SEEN_WAITV;
		break;
	case NR_FUTEX_WAKE: /* (address, bits, count, flags) */
		call->address = a[0];
		call->does = FUTEX_DOES_WAKE;
		call->seen = (__u32)a[2] > 1 ? SEEN_WAKE_MANY : 0;
		break;
	case NR_FUTEX_REQUEUE: /* (array of two, flags, to wake, to move) */
		call->address = word_in_array(a[0], 0);
		call->second = word_in_array(a[0], 1);
		call->count = (__u32)a[2];
		call->does = FUTEX_DOES_REQUEUE;
		call->seen = SEEN_REQUEUE;
		break;
	}
}

#endif
