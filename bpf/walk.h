/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One step of the walk: from a function's registers to its caller's.
 *
 * An address on the stack is a return address: it follows the call, and may lie behind the
 * end of the function that called. So the row of the byte before it is the right one, but
 * not where a function was interrupted (by the probe, or by a signal). The interrupted
 * address of a signal is stored plus one, so that all addresses but the first read alike.
 */
#ifndef MEMTRACE_WALK_H
#define MEMTRACE_WALK_H

#include "trampoline.h"
#include "unwind.h"

#define STACK_DEPTH 127

/* The stack is read in pieces, which is cheaper than word by word. */
#define WINDOW_WORDS 64
#define WORD 8

/* What is known of a stack. */
enum stack_flags {
	STACK_COMPLETE = 1,  /* reached the thread's start */
	STACK_GUESSED = 2,   /* some step went by the frame pointer */
	STACK_RETURNING = 4, /* the first address is a return address: the callee is left out */
};

struct stack {
	__u32 depth;
	enum stack_flags flags;
	__u32 space; /* whose addresses they are */
	enum unwind_rule last; /* of the last address: why the walk ended there */
	__u64 addresses[STACK_DEPTH]; /* leaf first */
};

/*
 * The state of a walk. It lies in a map, not on the program's own stack: the verifier does
 * not follow values through a map, and so sees every step as the same one.
 */
struct walk {
	__u32 busy;
	__u32 window_bytes;
	__u64 space; /* the word of unwind_spaces */
	__u64 salt;  /* tells spaces and their changes apart in the cache */
	__u64 pc;
	__u64 sp;
	__u64 fp;
	__u64 link; /* arm64: the return address of a function that has not saved it */
	__u64 hash;
	__u64 window_start;
	__u64 trampoline; /* where probed functions return to */
	__u32 flags;
	__u32 rule;	   /* of the last step */
	__u32 interrupted; /* pc is where a function was interrupted, not a return address */
	__u32 skip;	   /* the first function is left out */
	__u32 guessed;	   /* pc comes from a guess */
	__u32 pad;
	__u64 window[WINDOW_WORDS];
	struct stack stack;
};

enum step { STEP_ON, STEP_STOP };

#if defined(__TARGET_ARCH_arm64)
/* The upper bits may hold a signature (pointer authentication) or a tag. */
#define CODE_ADDRESS(word) ((word) & ((1ULL << 48) - 1))
/* struct rt_sigframe: a siginfo, then a ucontext whose registers begin at 176 + 8. */
#define SIGNAL_REGISTER(n) (128 + 176 + 8 + (n) * WORD)
#define SIGNAL_FP SIGNAL_REGISTER(29)
#define SIGNAL_LINK SIGNAL_REGISTER(30)
#define SIGNAL_SP SIGNAL_REGISTER(31)
#define SIGNAL_PC SIGNAL_REGISTER(32)
#else
#define CODE_ADDRESS(word) (word)
/* The ucontext is on top of the stack; its registers begin at 40: r8 … r15, di, si, bp, … */
#define SIGNAL_FP (40 + 10 * WORD)
#define SIGNAL_SP (40 + 15 * WORD)
#define SIGNAL_PC (40 + 16 * WORD)
#endif

/* fill_window reads the piece of the stack that begins at the address, or only its first
 * word where the stack ends. */
static __noinline bool fill_window(struct walk *w, __u64 address)
{
	if (!w)
		return false;
	w->window_start = address;
	w->window_bytes = sizeof(w->window);
	if (!bpf_probe_read_user(w->window, sizeof(w->window), (void *)address))
		return true;
	w->window_bytes = WORD;
	if (!bpf_probe_read_user(w->window, WORD, (void *)address))
		return true;
	w->window_bytes = 0;
	return false;
}

/* read_word reads a word of the stack. */
static __always_inline bool read_word(struct walk *w, __u64 address, __u64 *word)
{
	__u64 offset = address - w->window_start;

	if (address % WORD)
		return false;
	if (offset >= w->window_bytes) {
		if (!fill_window(w, address))
			return false;
		offset = 0;
	}
	*word = w->window[offset / WORD % WINDOW_WORDS];
	return true;
}

/* guess steps by the frame pointer, as if this function and its callers kept one. */
static __noinline enum step guess(struct walk *w)
{
	__u64 fp = w->fp, pc, caller_fp;

	if (fp == 0) {
		w->flags |= STACK_COMPLETE;
		return STEP_STOP;
	}
	if (fp < w->sp || !read_word(w, fp, &caller_fp) || !read_word(w, fp + WORD, &pc))
		return STEP_STOP;
	w->pc = CODE_ADDRESS(pc);
	w->fp = caller_fp;
	w->sp = fp + 2 * WORD;
	w->guessed = true;
	w->flags |= STACK_GUESSED;
	return STEP_ON;
}

/* at_entry tells whether the walk stands at the first instructions of a function whose probe
 * asks for its caller: nothing has been pushed yet. */
static __always_inline bool at_entry(struct walk *w)
{
	return w->interrupted && !w->stack.depth && (w->flags & STACK_RETURNING);
}

/* leave_entry steps from there to the caller, without a row: a C library built without call
 * frame information (musl) has none. */
static __noinline enum step leave_entry(struct walk *w)
{
	__u64 pc = w->link;

#if !defined(__TARGET_ARCH_arm64)
	if (!read_word(w, w->sp, &pc))
		return STEP_STOP;
	w->sp += WORD;
#endif
	w->pc = CODE_ADDRESS(pc);
	w->interrupted = false;
	return STEP_ON;
}

/* leave_signal steps from the kernel's frame of a signal handler to what was interrupted. */
static __noinline enum step leave_signal(struct walk *w)
{
	__u64 frame = w->sp, fp, sp, pc;

	if (!read_word(w, frame + SIGNAL_FP, &fp) || !read_word(w, frame + SIGNAL_SP, &sp) ||
	    !read_word(w, frame + SIGNAL_PC, &pc))
		return STEP_STOP;
#if defined(__TARGET_ARCH_arm64)
	if (!read_word(w, frame + SIGNAL_LINK, &w->link))
		return STEP_STOP;
#endif
	w->pc = CODE_ADDRESS(pc);
	w->fp = fp;
	w->sp = sp;
	w->interrupted = true;
	return STEP_ON;
}

#if defined(__TARGET_ARCH_arm64)

/* step_by steps by a row of the tables. */
static __always_inline enum step step_by(struct walk *w, __u64 row)
{
	__u32 rule = ROW_RULE(row);
	bool by_fp = rule == RULE_FP || rule == RULE_FP_LINK || rule == RULE_FP_RETURN;
	bool in_link = rule == RULE_SP_LINK || rule == RULE_FP_LINK;
	bool fp_kept = rule == RULE_SP_RETURN || rule == RULE_FP_RETURN;
	__u64 cfa = (by_fp ? w->fp : w->sp) + ROW_CFA(row), slot = cfa - ROW_SLOT(row), fp = w->fp, pc = w->link;

	/* Only a function that was interrupted can still have its link. */
	if (in_link && !w->interrupted)
		return STEP_STOP;
	if (slot != cfa && !fp_kept && !read_word(w, slot, &fp))
		return STEP_STOP;
	if (!in_link && !read_word(w, fp_kept ? slot : slot + ROW_RETURN(row) * WORD, &pc))
		return STEP_STOP;
	w->pc = CODE_ADDRESS(pc);
	w->fp = fp;
	w->sp = cfa;
	w->interrupted = false;
	return STEP_ON;
}

#define IS_ORDINARY(rule) ((rule) >= RULE_SP && (rule) <= RULE_FP_RETURN)

static __always_inline enum step step_oddly(struct walk *w, __u64 row)
{
	return at_entry(w) ? leave_entry(w) : guess(w);
}

#else

static __always_inline enum step step_by(struct walk *w, __u64 row)
{
	__u64 cfa = (ROW_RULE(row) == RULE_FP ? w->fp : w->sp) + ROW_CFA(row), slot = ROW_SLOT(row), fp = w->fp, pc;

	if (slot && !read_word(w, cfa - slot, &fp))
		return STEP_STOP;
	if (!read_word(w, cfa - WORD, &pc))
		return STEP_STOP;
	w->pc = pc;
	w->fp = fp;
	w->sp = cfa;
	w->interrupted = false;
	return STEP_ON;
}

#define IS_ORDINARY(rule) ((rule) == RULE_SP || (rule) == RULE_FP)

/* PLT stubs are this long, and the push is over from the row's distance / 8 on. */
#define PLT_STUB 16

static __noinline enum step step_oddly(struct walk *w, __u64 row)
{
	__u64 cfa, fp = w->fp, pc;

	switch (ROW_RULE(row)) {
	case RULE_FP_INDIRECT:
		if (!read_word(w, w->fp - ROW_SLOT(row), &cfa) || !read_word(w, w->fp, &fp))
			return STEP_STOP;
		break;
	case RULE_PLT:
		cfa = w->sp + WORD;
		if (w->pc % PLT_STUB >= ROW_CFA(row) / WORD)
			cfa += WORD;
		break;
	default:
		if (at_entry(w))
			return leave_entry(w);
		w->interrupted = false;
		return guess(w);
	}
	if (!read_word(w, cfa - WORD, &pc))
		return STEP_STOP;
	w->pc = pc;
	w->fp = fp;
	w->sp = cfa;
	w->interrupted = false;
	return STEP_ON;
}

#endif

/* record adds the current function to the stack. */
static __always_inline void record(struct walk *w)
{
	__u32 depth = w->stack.depth;
	__u64 address = w->pc;

	if (w->skip) {
		w->skip = false;
		return;
	}
	if (depth >= STACK_DEPTH)
		return;
	if (depth && w->interrupted)
		address++;
	w->stack.addresses[depth] = address;
	w->stack.depth = depth + 1;
	w->hash = (w->hash ^ address) * MIX;
	w->hash ^= w->hash >> 32;
}

/* Where the stack pointer was at the entry of the function that has just been left. */
#if defined(__TARGET_ARCH_arm64)
#define ENTRY_SP(w) ((w)->sp)
#else
#define ENTRY_SP(w) ((w)->sp - WORD)
#endif

/* walk_step is called for each function of the stack, and returns STEP_STOP to end. */
static long walk_step(__u32 index, struct walk **walk)
{
	struct walk *w = *walk;
	__u64 row;
	__u32 rule;

	if (w->pc == w->trampoline && !w->interrupted)
		w->pc = true_return(ENTRY_SP(w));
	row = cached_row(w->space, w->salt, w->pc - !w->interrupted);
	rule = ROW_RULE(row);
	/* What was guessed wrongly ends the walk. */
	if (rule == RULE_UNMAPPED && w->guessed)
		return STEP_STOP;
	w->guessed = false;
	w->rule = rule;
	record(w);
	if (IS_ORDINARY(rule))
		return step_by(w, row);
	if (rule == RULE_END) {
		w->flags |= STACK_COMPLETE;
		return STEP_STOP;
	}
	if (rule == RULE_SIGNAL)
		return leave_signal(w);
	return step_oddly(w, row);
}

#endif
