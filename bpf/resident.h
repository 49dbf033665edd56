/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How much of the current process is resident, as the kernel counts it. Since 6.2 each
 * processor has a part of the counter to itself; all of them are summed here, as for
 * /proc/PID/smaps_rollup, because the common part alone is off by megabytes.
 */
#ifndef MEMTRACE_RESIDENT_H
#define MEMTRACE_RESIDENT_H

#include "types.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct percpu_counter {
	__s64 count;
	__s32 *counters;
};

struct mm_struct {
	struct percpu_counter rss_stat[1];
};

/* Before 6.2. */
typedef struct {
	__s64 counter;
} atomic_long_t;

struct mm_rss_stat {
	atomic_long_t count[1];
};

struct mm_struct___sums {
	struct mm_rss_stat rss_stat;
};

struct task_struct {
	struct mm_struct *mm;
};

#pragma clang attribute pop

/* The kernel's numbers of what it counts; swapped pages, number 2, are not resident. */
#define PAGES_FILE 0
#define PAGES_ANONYMOUS 1
#define PAGES_SHARED 3

#define MAX_PROCESSORS 1024

/* Set before load. */
const volatile __u32 processors;

/*
 * The distance of each processor's own memory is not to be had by name on every kernel. A map
 * with a part for each processor tells it: its parts lie where its base and the distance say.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} distances SEC(".maps");

struct bpf_array {
	void *pptrs[0];
} __attribute__((preserve_access_index));

/* number_of makes a number of a pointer, which the kernel lets nobody reckon with: it copies it
 * from the stack. */
static __always_inline __u64 number_of(void *pointer)
{
	void *volatile kept = pointer;
	__u64 number = 0;

	bpf_probe_read_kernel(&number, sizeof(number), (const void *)&kept);
	return number;
}

/* own_parts sums what each processor has not yet added to a counter. */
static __always_inline __s64 own_parts(const __s32 *counters)
{
	__u64 base = number_of(&distances);
	__s64 sum = 0;
	__u32 key = 0;

	if (bpf_probe_read_kernel(&base, sizeof(base), (void *)base + bpf_core_field_offset(struct bpf_array, pptrs)))
		return 0;
	for (__u32 i = 0; i < MAX_PROCESSORS && i < processors; i++) {
		void *place = bpf_map_lookup_percpu_elem(&distances, &key, i);
		__s32 part = 0;

		if (!place)
			continue;
		if (bpf_probe_read_kernel(&part, sizeof(part), (const void *)counters + (number_of(place) - base)))
			return sum;
		sum += part;
	}
	return sum;
}

static __always_inline __s64 pages_of(struct mm_struct *mm, __u32 kind)
{
	struct percpu_counter *counter;
	__s64 sum = 0;

	if (bpf_core_type_exists(struct mm_rss_stat)) {
		struct mm_struct___sums *old = (void *)mm;
		__u64 counts = (__u64)old + bpf_core_field_offset(struct mm_struct___sums, rss_stat) +
			       bpf_core_field_offset(struct mm_rss_stat, count);

		bpf_probe_read_kernel(&sum, sizeof(sum), (void *)(counts + kind * sizeof(sum)));
		return sum;
	}
	counter = (void *)mm + bpf_core_field_offset(struct mm_struct, rss_stat) +
		  kind * bpf_core_type_size(struct percpu_counter);
	return BPF_CORE_READ(counter, count) + own_parts(BPF_CORE_READ(counter, counters));
}

/* resident_pages returns the current process's resident pages. */
shared_function __s64 resident_pages(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct mm_struct *mm = BPF_CORE_READ(task, mm);

	if (!mm)
		return 0;
	return pages_of(mm, PAGES_FILE) + pages_of(mm, PAGES_ANONYMOUS) + pages_of(mm, PAGES_SHARED);
}

#endif
