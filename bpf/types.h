/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The kernel's types that the programs use, and the helpers to use them with. Only the
 * fields that are read stand here; their offsets are relocated at load (CO-RE), but for
 * pt_regs, which is part of the kernel's interface to user space.
 */
#ifndef MEMTRACE_TYPES_H
#define MEMTRACE_TYPES_H

#include <linux/types.h>
#include <linux/bpf.h>

#if defined(__TARGET_ARCH_x86)

struct pt_regs {
	unsigned long r15;
	unsigned long r14;
	unsigned long r13;
	unsigned long r12;
	unsigned long bp;
	unsigned long bx;
	unsigned long r11;
	unsigned long r10;
	unsigned long r9;
	unsigned long r8;
	unsigned long ax;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long cs;
	unsigned long flags;
	unsigned long sp;
	unsigned long ss;
};

#elif defined(__TARGET_ARCH_arm64)

struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
};

struct pt_regs {
	union {
		struct user_pt_regs user_regs;
		struct {
			__u64 regs[31];
			__u64 sp;
			__u64 pc;
			__u64 pstate;
		};
	};
};

#else
#error "no such architecture"
#endif

/* bpf_tracing.h takes the kernel's names of the registers when it sees this. */
#define __VMLINUX_H__

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/* A function of a shared header that is not inlined; not every family calls all of them. */
#define shared_function static __noinline __attribute__((unused))

typedef _Bool bool;
enum { false, true };

#endif
