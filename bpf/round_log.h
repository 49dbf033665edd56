/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Rounds that begin with a line of the target's output. What was written is searched when the
 * system call returns, because only then it is known how much of it was taken; an automaton
 * for each stream goes on where the last write ended.
 */
#ifndef MEMTRACE_ROUND_LOG_H
#define MEMTRACE_ROUND_LOG_H

/* Bytes that are read at a time, and the most of one buffer; what is longer counts as lost. */
#define LOG_CHUNK 64
#define LOG_LONGEST (1 << 20)

/* The most buffers of one call: UIO_MAXIOV of linux/uio.h. */
#define LOG_BUFFERS 1024

struct buffer {
	__u64 address;
	__u64 length;
};

/* The part of struct user_msghdr (linux/socket.h) that names the buffers. */
struct message {
	__u64 name;
	__u64 name_length;
	__u64 buffers;
	__u64 count;
};

struct log_search {
	struct log_stream *stream;
	__u64 address;
	__u64 left; /* bytes that were written and not yet searched */
	__u8 chunk[LOG_CHUNK];
};

/* search_byte takes one byte of a buffer. */
static long search_byte(__u32 n, struct log_search *s)
{
	__u32 at = n & (LOG_CHUNK - 1), key;
	struct log_state *state;
	struct log_stream *stream = s->stream;
	__u8 byte;

	if (at == 0 && bpf_probe_read_user(s->chunk, sizeof(s->chunk), (void *)s->address + n)) {
		/* The end of the buffer may be the end of the mapping: byte by byte then. */
		for (__u32 i = 0; i < LOG_CHUNK; i++)
			bpf_probe_read_user(&s->chunk[i], 1, (void *)s->address + n + i);
	}
	byte = s->chunk[at];
	if (byte == '\n') {
		stream->state = 0;
		stream->told = 0;
		return 0;
	}
	key = stream->state;
	state = bpf_map_lookup_elem(&log_states, &key);
	if (!state)
		return 1;
	stream->state = state->next[byte];
	if (stream->state != log_length || stream->told)
		return 0;
	stream->told = 1;
	boundary();
	return 0;
}

/* search takes one buffer, as far as it was written. */
static __noinline int search(struct log_search *s, __u64 address, __u64 length)
{
	if (!s)
		return 0;
	if (length > s->left)
		length = s->left;
	s->left -= length;
	s->address = address;
	if (length > LOG_LONGEST) {
		count_loss(LOSS_EVENTS);
		length = LOG_LONGEST;
	}
	bpf_loop(length, search_byte, s, 0);
	return 0;
}

struct buffer_walk {
	struct log_search search;
	__u64 buffers;
};

/* search_buffer takes one of several buffers. */
static long search_buffer(__u32 n, struct buffer_walk *walk)
{
	struct buffer buffer = {};

	if (!walk->search.left)
		return 1;
	if (bpf_probe_read_user(&buffer, sizeof(buffer), (void *)walk->buffers + n * sizeof(buffer))) {
		count_loss(LOSS_READS);
		return 1;
	}
	search(&walk->search, buffer.address, buffer.length);
	return 0;
}

/* entered_write notes what is about to be written to an output stream. */
static __always_inline int entered_write(struct pt_regs *where, __u32 kind)
{
	__u32 slot;
	struct round_thread *t = round_of_thread(&slot);
	struct pt_regs regs;
	__u64 descriptor;

	if (!t)
		return 0;
	t->hits++;
	t->write.stream = 0;
	if (bpf_probe_read_kernel(&regs, sizeof(regs), where)) {
		count_loss(LOSS_READS);
		return 0;
	}
	descriptor = argument(&regs, 0);
	if (descriptor == 0 || descriptor >= LOG_STREAMS)
		return 0;
	t->write.stream = descriptor;
	t->write.kind = kind;
	t->write.address = argument(&regs, 1);
	t->write.count = argument(&regs, 2);
	return 0;
}

/* left_write searches what has been written. */
static __always_inline int left_write(__s64 written)
{
	__u32 slot, stream;
	struct round_thread *t = round_of_thread(&slot);
	struct buffer_walk walk = {};
	struct message message = {};
	struct log_write write;

	if (!t || !t->write.stream)
		return 0;
	write = t->write;
	t->write.stream = 0;
	stream = write.stream;
	walk.search.stream = bpf_map_lookup_elem(&log_streams, &stream);
	if (written <= 0 || !walk.search.stream)
		return 0;
	walk.search.left = written;
	walk.buffers = write.address;
	if (write.kind == SYSCALL_WRITES)
		return search(&walk.search, write.address, write.count);
	if (write.kind == SYSCALL_WRITES_MESSAGE) {
		if (bpf_probe_read_user(&message, sizeof(message), (void *)write.address)) {
			count_loss(LOSS_READS);
			return 0;
		}
		walk.buffers = message.buffers;
	}
	bpf_loop(LOG_BUFFERS, search_buffer, &walk, 0);
	return 0;
}

#endif
