/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The exact part: what each thread asked for, in calls, bytes and size classes. */
#ifndef MEMTRACE_ALLOC_COUNT_H
#define MEMTRACE_ALLOC_COUNT_H

/* More than any allocator grants (PTRDIFF_MAX): such a call fails. */
#define LARGEST_BLOCK (~0ULL >> 1)

/* product is what calloc and reallocarray ask for; one that overflows cannot be granted. */
static __always_inline __u64 product(__u64 count, __u64 size)
{
	const __u64 safe = 1ULL << 31;

	if ((count >= safe || size >= safe) && size && count > LARGEST_BLOCK / size)
		return ~0ULL;
	return count * size;
}

static __always_inline struct alloc_thread *counters_of(__u32 slot)
{
	return bpf_map_lookup_elem(&alloc_threads, &slot);
}

/* count_hit counts a run of a program, whatever it finds. */
static __always_inline void count_hit(struct alloc_thread *t)
{
	__u32 key = 0;
	__u64 *hits = bpf_map_lookup_elem(&alloc_hits, &key);

	t->hits++;
	if (hits)
		(*hits)++;
}

/* between_windows tells whether the probes are going out or coming in: some are in, some are
 * not, and what is counted then would not belong together. */
static __always_inline bool between_windows(void)
{
	return course_of(COURSE_GAPS) & 1;
}

/* count_new counts a call that made a block. */
static __always_inline void count_new(struct alloc_thread *t, __u64 size)
{
	__u32 class = size_class(size) & (SIZE_CLASSES - 1);

	t->allocs++;
	t->alloc_bytes += size;
	t->size_allocs[class]++;
	t->size_bytes[class] += size;
}

static __always_inline void count_resize(struct alloc_thread *t, __u64 size)
{
	t->reallocs++;
	t->realloc_bytes += size;
}

/* usable_size reads how many bytes the block at the address can hold: glibc keeps the size
 * of the chunk, with three flags, in the word before it. A chunk in use also holds the next
 * one's first word, unless it is mapped by itself. */
static __always_inline __u64 usable_size(__u64 address)
{
	const __u64 flags = 7, mapped = 2, word = sizeof(__u64);
	__u64 header = 0, size;

	if (bpf_probe_read_user(&header, sizeof(header), (void *)(address - word))) {
		count_loss(LOSS_READS);
		return 0;
	}
	size = header & ~flags;
	return size - (header & mapped ? 2 * word : word);
}

/* count_free counts a call that released a block. */
static __always_inline void count_free(struct alloc_thread *t, __u64 address)
{
	t->frees++;
	if (chunk_headers)
		t->free_bytes += usable_size(address);
}

#endif
