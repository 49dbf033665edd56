/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where probed functions return to. When the return of a function is probed, by anybody, the
 * kernel puts the address of a trampoline over the return address and keeps the true one.
 */
#ifndef MEMTRACE_TRAMPOLINE_H
#define MEMTRACE_TRAMPOLINE_H

#include "types.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* The kernel's types; what stands behind the three underscores keeps them apart from other
 * headers' views of the same types. */
struct xol_area___probed {
	unsigned long vaddr;
};

struct uprobes_state___probed {
	struct xol_area___probed *xol_area;
};

struct mm_struct___probed {
	struct uprobes_state___probed uprobes_state;
};

struct return_instance___probed {
	unsigned long stack; /* the stack pointer at the function's entry */
	unsigned long orig_ret_vaddr;
	struct return_instance___probed *next; /* of the caller */
};

struct uprobe_task___probed {
	struct return_instance___probed *return_instances;
};

struct task_struct___probed {
	struct mm_struct___probed *mm;
	struct uprobe_task___probed *utask;
};

#pragma clang attribute pop

/* trampoline_address returns where the current process's probed functions return to; 0 when
 * it has no such place. */
static __always_inline __u64 trampoline_address(void)
{
	struct task_struct___probed *task = (void *)bpf_get_current_task_btf();

	return BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
}

/* The most probed functions that are looked through on one stack. */
#define MAX_PROBED_RETURNS 16

/* true_return returns the return address of the probed function that the current thread
 * entered with the given stack pointer; 0 when none is known. */
static __noinline __u64 true_return(__u64 sp)
{
	struct task_struct___probed *task = (void *)bpf_get_current_task_btf();
	struct return_instance___probed *probed = BPF_CORE_READ(task, utask, return_instances);

	for (__u32 i = 0; i < MAX_PROBED_RETURNS && probed; i++) {
		if (BPF_CORE_READ(probed, stack) == sp)
			return BPF_CORE_READ(probed, orig_ret_vaddr);
		probed = BPF_CORE_READ(probed, next);
	}
	return 0;
}

#endif
