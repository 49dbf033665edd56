//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A process that executes another program is another process to the trace: what was mapped
 * is gone, addresses mean something else. From then on nothing of it is counted.
 */
#include "filter.h"
#include "thread.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("raw_tp/sched_process_exec")
int exec_program(void *ctx)
{
	enum thread_counts executed = PROGRAMS_EXECUTED;
	__u64 *programs = bpf_map_lookup_elem(&thread_count, &executed);
	__u32 *slot;

	if (!programs || !filter_current())
		return 0;
	__sync_fetch_and_add(programs, 1);
	slot = bpf_task_storage_get(&thread_slots, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (slot)
		*slot = SLOT_GONE;
	return 0;
}
