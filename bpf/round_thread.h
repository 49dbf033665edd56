/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Rounds of a thread: from the return of one idle wait to the return of the next. */
#ifndef MEMTRACE_ROUND_THREAD_H
#define MEMTRACE_ROUND_THREAD_H

/* linux/errno.h and linux/futex.h, and the kernel's own codes for a call that is restarted. */
#define EINTR 4
#define EAGAIN 11
#define ETIME 62
#define ETIMEDOUT 110
#define ERESTARTSYS 512
#define ERESTART_RESTARTBLOCK 516

#define FUTEX_COMMAND_MASK 127 /* FUTEX_CMD_MASK */
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define FUTEX_REQUEUE 3
#define FUTEX_CMP_REQUEUE 4
#define FUTEX_WAKE_OP 5
#define FUTEX_WAIT_BITSET 9
#define FUTEX_WAKE_BITSET 10
#define FUTEX_WAIT_REQUEUE_PI 11

#define IORING_ENTER_GETEVENTS 1

struct timespec {
	__s64 seconds;
	__s64 nanoseconds;
};

/* argument returns a system call's argument, counted from 0. */
static __always_inline __u64 argument(const struct pt_regs *regs, __u32 n)
{
#if defined(__TARGET_ARCH_arm64)
	return n < 6 ? regs->regs[n] : 0;
#else
	switch (n) {
	case 0:
		return regs->di;
	case 1:
		return regs->si;
	case 2:
		return regs->dx;
	case 3:
		return regs->r10;
	case 4:
		return regs->r8;
	}
	return regs->r9;
#endif
}

/* is_zero tells whether a timeout in the target's memory is 0; one at NULL is endless. */
static __always_inline bool is_zero(__u64 address)
{
	struct timespec timeout = {};

	if (!address)
		return false;
	if (bpf_probe_read_user(&timeout, sizeof(timeout), (void *)address)) {
		count_loss(LOSS_READS);
		return false;
	}
	return timeout.seconds == 0 && timeout.nanoseconds == 0;
}

static __always_inline bool futex_wakes(__u32 command)
{
	return command == FUTEX_WAKE || command == FUTEX_REQUEUE || command == FUTEX_CMP_REQUEUE ||
	       command == FUTEX_WAKE_OP || command == FUTEX_WAKE_BITSET;
}

/* futex_waits tells whether a futex call waits with a timeout; without one it waits for a
 * lock or for work that others hand over. */
static __always_inline bool futex_waits(__u32 command, __u64 timeout)
{
	return timeout && (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_WAIT_REQUEUE_PI);
}

/* waits tells whether the system call may be an idle wait. */
static __always_inline bool waits(const struct pt_regs *regs, __u32 kind, __u32 n)
{
	switch (kind) {
	case SYSCALL_SLEEPS:
	case SYSCALL_MAY_SLEEP:
		return true;
	case SYSCALL_MILLISECONDS:
		return (__u32)argument(regs, n) != 0;
	case SYSCALL_TIMESPEC:
		return !is_zero(argument(regs, n));
	case SYSCALL_FUTEX:
		return futex_waits(argument(regs, 1) & FUTEX_COMMAND_MASK, argument(regs, 3));
	case SYSCALL_RING:
		return argument(regs, 2) != 0 && (argument(regs, 3) & IORING_ENTER_GETEVENTS);
	}
	return false;
}

/* round_of_thread finds the current thread's round; NULL for threads that share a slot. */
static __always_inline struct round_thread *round_of_thread(__u32 *slot)
{
	*slot = current_slot();
	if (*slot == SLOT_OVERFLOW)
		return NULL;
	return bpf_map_lookup_elem(&round_threads, slot);
}

static __always_inline int entered_syscall(struct pt_regs *where, __u64 number, __u32 entry)
{
	__u32 kind = entry & SYSCALL_KIND_MASK, slot;
	struct round_thread *t = round_of_thread(&slot);
	struct pt_regs regs;

	if (!t)
		return 0;
	t->hits++;
	if (kind >= SYSCALL_SENDS) {
		t->flags |= ROUND_WROTE;
		return 0;
	}
	if (bpf_probe_read_kernel(&regs, sizeof(regs), where)) {
		count_loss(LOSS_READS);
		return 0;
	}
	if (kind == SYSCALL_RING && argument(&regs, 1))
		t->flags |= ROUND_WROTE; /* what is submitted may write */
	t->kind = kind;
	if (waits(&regs, kind, entry >> SYSCALL_KIND_BITS)) {
		t->inside = number + 1;
		t->wait_ns = bpf_ktime_get_ns();
		t->switches = bpf_get_current_task_btf()->nvcsw;
		return 0;
	}
	if (kind == SYSCALL_FUTEX && futex_wakes(argument(&regs, 1) & FUTEX_COMMAND_MASK)) {
		t->inside = number + 1;
		t->wait_ns = 0;
	}
	return 0;
}

/* was_idle tells whether the thread has returned to its program from an idle wait. */
static __always_inline bool was_idle(struct round_thread *t, __s64 result)
{
	if (result < 0 && result != -EINTR && result != -ETIME && result != -ETIMEDOUT)
		return false;
	return t->kind != SYSCALL_MAY_SLEEP || bpf_get_current_task_btf()->nvcsw != t->switches;
}

/* timed_out tells whether the wait ended although nothing had happened. */
static __always_inline bool timed_out(__u32 kind, __s64 result)
{
	if (result == -ETIME || result == -ETIMEDOUT)
		return true;
	return result == 0 && (kind == SYSCALL_SLEEPS || kind == SYSCALL_MILLISECONDS || kind == SYSCALL_TIMESPEC);
}

/* set_mark notes where the thread's counters stand. */
static __always_inline void set_mark(struct round_mark *mark, __u32 slot)
{
	struct alloc_thread *a = bpf_map_lookup_elem(&alloc_threads, &slot);

	mark->cpu_ns = bpf_get_current_task_btf()->se.sum_exec_runtime;
	mark->gaps = course_of(COURSE_GAPS);
	if (!a)
		return;
	mark->allocs = a->allocs;
	mark->alloc_bytes = a->alloc_bytes;
	mark->frees = a->frees;
	mark->free_bytes = a->free_bytes;
}

static __always_inline void add_value(__u64 *sum, __u64 *most, __u64 value)
{
	*sum += value;
	if (value > *most)
		*most = value;
}

/* add_times adds a round's times and what it did to its thread's sums. */
static __always_inline void add_times(struct round_sums *s, const struct round_event *e)
{
	s->count++;
	add_value(&s->duration_ns, &s->max_duration_ns, e->duration_ns);
	add_value(&s->idle_ns, &s->max_idle_ns, e->idle_ns);
	add_value(&s->period_ns, &s->max_period_ns, e->period_ns);
	add_value(&s->cpu_ns, &s->max_cpu_ns, e->cpu_ns);
	if (e->flags & ROUND_WROTE)
		s->writes++;
	if (e->flags & ROUND_WOKE)
		s->wakes++;
	if (e->flags & ROUND_TIMED_OUT)
		s->timeouts++;
}

/* add_allocations adds what a round allocated, if the probes saw all of it. */
static __always_inline void add_allocations(struct round_sums *s, const struct round_event *e)
{
	if (e->flags & ROUND_INCOMPLETE) {
		s->incomplete++;
		return;
	}
	add_value(&s->allocs, &s->max_allocs, e->allocs);
	add_value(&s->alloc_bytes, &s->max_alloc_bytes, e->alloc_bytes);
	s->by_bytes[size_class(e->alloc_bytes) & (SIZE_CLASSES - 1)]++;
}

/* end_round records the round that ends where the mark is. */
static __always_inline void end_round(struct round_thread *t, __u32 slot, __u64 index, __u64 now,
				      const struct round_mark *mark)
{
	struct round_event event = {
		.index = index,
		.start_ns = t->start_ns,
		.duration_ns = t->wait_ns - t->start_ns,
		.idle_ns = t->idle_ns,
		.period_ns = now - t->start_ns,
		.cpu_ns = mark->cpu_ns - t->mark.cpu_ns,
		.allocs = mark->allocs - t->mark.allocs,
		.alloc_bytes = mark->alloc_bytes - t->mark.alloc_bytes,
		.frees = mark->frees - t->mark.frees,
		.free_bytes = mark->free_bytes - t->mark.free_bytes,
		.slot = slot,
		.flags = t->flags,
		.wait = t->wait,
	};

	if (mark->gaps != t->mark.gaps || mark->gaps & 1)
		event.flags |= ROUND_INCOMPLETE;
	add_times(&t->sums, &event);
	add_allocations(&t->sums, &event);
	if (bpf_ringbuf_output(&round_log, &event, sizeof(event), BPF_RB_NO_WAKEUP))
		t->sums.lost++;
}

/* left_syscall ends a round and begins the next where the call was an idle wait. */
static __always_inline int left_syscall(__s64 result)
{
	__u32 slot, number;
	struct round_thread *t = round_of_thread(&slot);
	struct thread *thread;
	struct round_mark mark = {};
	__u64 now;

	if (!t || !t->inside)
		return 0;
	number = t->inside - 1;
	t->inside = 0;
	if (!t->wait_ns) {
		if (result > 0)
			t->flags |= ROUND_WOKE;
		return 0;
	}
	thread = bpf_map_lookup_elem(&threads, &slot);
	if (!thread || !was_idle(t, result))
		return 0;
	now = bpf_ktime_get_ns();
	set_mark(&mark, slot);
	if (t->start_ns)
		end_round(t, slot, thread->round, now, &mark);
	thread->round++;
	t->mark = mark;
	t->idle_ns = now - t->wait_ns;
	t->start_ns = now;
	t->wait = number;
	t->flags = timed_out(t->kind, result) ? ROUND_TIMED_OUT : 0;
	return 0;
}

#endif
