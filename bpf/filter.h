/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The processes that are traced. */
#ifndef MEMTRACE_FILTER_H
#define MEMTRACE_FILTER_H

#include "types.h"

#define MAX_TARGETS_DEFAULT 1024

/* One traced process. */
struct target {
	__u32 space; /* index of its address space, see unwind.h */
	__u32 flags;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_TARGETS_DEFAULT);
	__type(key, __u32); /* process id in the initial PID namespace */
	__type(value, struct target);
} targets SEC(".maps");

/* filter_current returns the current process's record, NULL when it is not traced. */
static __always_inline struct target *filter_current(void)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32;

	return bpf_map_lookup_elem(&targets, &pid);
}

#endif
