/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Rounds of the whole process. A boundary hands over what all threads have done so far; user
 * space takes the differences. No lock is needed: boundaries are numbered.
 */
#ifndef MEMTRACE_ROUND_PROCESS_H
#define MEMTRACE_ROUND_PROCESS_H

/* The most living threads whose processor time is added up at a boundary. */
#define MOST_TASKS 1024

struct slot_walk {
	struct round_event sum;
};

/* add_slot adds one thread's counters to the sums. */
static long add_slot(__u32 slot, struct slot_walk *walk)
{
	struct alloc_thread *a = bpf_map_lookup_elem(&alloc_threads, &slot);
	struct round_event *sum = &walk->sum;

	if (!a)
		return 1;
	sum->allocs += *(volatile __u64 *)&a->allocs;
	sum->alloc_bytes += *(volatile __u64 *)&a->alloc_bytes;
	sum->frees += *(volatile __u64 *)&a->frees;
	sum->free_bytes += *(volatile __u64 *)&a->free_bytes;
	return 0;
}

static __always_inline struct list_head *next_in_list(const struct list_head *at)
{
	struct list_head *next = NULL;

	return bpf_probe_read_kernel(&next, sizeof(next), &at->next) ? NULL : next;
}

struct task_walk {
	struct list_head *head;
	struct list_head *at;
	__u64 cpu_ns;
};

/* add_task adds the processor time of one living thread. */
static long add_task(__u32 n, struct task_walk *walk)
{
	struct task_struct *task;

	if (!walk->at || walk->at == walk->head)
		return 1;
	task = (void *)walk->at - bpf_core_field_offset(struct task_struct, thread_node);
	walk->cpu_ns += BPF_CORE_READ(task, se.sum_exec_runtime);
	walk->at = next_in_list(walk->at);
	return 0;
}

/* process_cpu returns the current process's processor time. Threads that run at this moment
 * are counted up to the scheduler's last look at them. */
static __always_inline __u64 process_cpu(void)
{
	struct signal_struct *signal = BPF_CORE_READ(bpf_get_current_task_btf(), signal);
	struct task_walk walk = {
		.head = &signal->thread_head,
		.cpu_ns = BPF_CORE_READ(signal, sum_sched_runtime),
	};

	walk.at = next_in_list(walk.head);
	bpf_loop(MOST_TASKS, add_task, &walk, 0);
	return walk.cpu_ns;
}

/* used_slots returns how many slots may hold figures. */
static __always_inline __u64 used_slots(void)
{
	enum thread_counts seen = THREADS_SEEN;
	__u64 *count = bpf_map_lookup_elem(&thread_count, &seen);

	return count ? *count + SLOT_FIRST : SLOT_FIRST;
}

/* boundary ends a round of the process and begins the next. */
static __noinline int boundary(void)
{
	struct slot_walk walk = { .sum = { .flags = ROUND_BOUNDARY } };
	struct round_event *event = &walk.sum;

	event->index = next_of(COURSE_ROUND);
	event->start_ns = bpf_ktime_get_ns();
	event->slot = current_slot();
	event->gaps = course_of(COURSE_GAPS);
	event->cpu_ns = process_cpu();
	bpf_loop(used_slots(), add_slot, &walk, 0);
	if (bpf_ringbuf_output(&round_log, event, sizeof(*event), BPF_RB_NO_WAKEUP))
		count_loss(LOSS_EVENTS);
	return 0;
}

#endif
