//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Children: tells user space the process id of each child that a traced process makes. */
#include "filter.h"
#include "losses.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define CHILDREN_BYTES 65536

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, CHILDREN_BYTES);
} children SEC(".maps");

struct task_struct {
	int pid;
	int tgid;
} __attribute__((preserve_access_index));

SEC("raw_tp/sched_process_fork")
int fork_child(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *child = (void *)ctx->args[1];
	int pid = BPF_CORE_READ(child, pid), process = BPF_CORE_READ(child, tgid);

	/* A new thread is no child. */
	if (pid != process || !filter_current())
		return 0;
	if (bpf_ringbuf_output(&children, &process, sizeof(process), 0))
		count_loss(LOSS_EVENTS);
	return 0;
}
