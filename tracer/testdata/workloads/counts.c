/*
 * Calls every entry of the allocator a known number of times, in as many threads as the
 * first argument says, and prints what each thread did:
 *
 *   thread TID allocs BYTES frees BYTES reallocs BYTES failed remote
 *
 * It waits for a line on its standard input before it starts and before it ends. Each call
 * is counted where it is made, by macros: nothing here asks the allocator for numbers but
 * for malloc_usable_size.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_THREADS = 64, BATCH = 50 };

struct tally {
	long tid;
	unsigned long allocs, alloc_bytes, frees, free_bytes, reallocs, realloc_bytes, failed, remote;
};

static struct tally tallies[MAX_THREADS];
static void *mail[MAX_THREADS][BATCH]; /* blocks for the next thread to release */
static pthread_barrier_t barrier;
static int threads, rounds;

/* Keeps the compiler from knowing what a pointer or a size is. */
#define HIDE(x) ({ __typeof__(x) hidden = (x); __asm__ volatile("" : "+r"(hidden) : : "memory"); hidden; })

/* MADE counts a call that must make a block of n bytes. */
#define MADE(n, call) ({ void *made = HIDE(call); if (!made) abort(); t->allocs++; t->alloc_bytes += (n); made; })
#define RESIZED(n, call) ({ void *made = HIDE(call); if (!made) abort(); t->reallocs++; t->realloc_bytes += (n); made; })
#define FAILED(call) ({ if (call) abort(); t->failed++; })

static void release(struct tally *t, void *block)
{
	t->frees++;
	t->free_bytes += malloc_usable_size(block);
	free(HIDE(block));
}

static void *aligned(struct tally *t, size_t alignment, size_t size)
{
	void *block = NULL;

	if (posix_memalign(&block, alignment, size))
		abort();
	t->allocs++;
	t->alloc_bytes += size;
	return HIDE(block);
}

static void new_blocks(struct tally *t)
{
	static size_t sizes[] = { 0, 1, 2, 3, 24, 25, 64, 65, 1000, 1024, 1025, 4096, 70000, 200000, 1 << 20 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		release(t, MADE(sizes[i], malloc(HIDE(sizes[i]))));
	release(t, MADE(21, calloc(HIDE(3), HIDE(7))));
	release(t, MADE(0, calloc(HIDE(0), HIDE(5))));
	release(t, MADE(50, realloc(HIDE((void *)NULL), HIDE(50))));
	release(t, MADE(0, realloc(HIDE((void *)NULL), HIDE(0))));
	release(t, MADE(20, reallocarray(HIDE((void *)NULL), HIDE(4), HIDE(5))));
	release(t, MADE(128, aligned_alloc(HIDE(64), HIDE(128))));
	release(t, MADE(33, memalign(HIDE(16), HIDE(33))));
	release(t, MADE(34, memalign(HIDE(8), HIDE(34))));
	release(t, MADE(300, memalign(HIDE(256), HIDE(300))));
	release(t, MADE(10, valloc(HIDE(10))));
	release(t, MADE(11, pvalloc(HIDE(11))));
	release(t, MADE(6, strdup(HIDE((char *)"hello"))));
	release(t, MADE(4, strndup(HIDE((char *)"hello"), HIDE(3))));
	release(t, aligned(t, 8, 40));
	release(t, aligned(t, 16, 41));
	release(t, aligned(t, 64, 100));
	release(t, aligned(t, 4096, 5000));
}

static void resized_blocks(struct tally *t)
{
	void *block = MADE(40, malloc(HIDE(40)));

	block = RESIZED(500, realloc(block, HIDE(500)));
	block = RESIZED(30, realloc(block, HIDE(30)));
	block = RESIZED(300000, realloc(block, HIDE(300000)));
	block = RESIZED(400000, realloc(block, HIDE(400000)));
	block = RESIZED(100, reallocarray(block, HIDE(10), HIDE(10)));
	FAILED(realloc(block, HIDE((size_t)PTRDIFF_MAX + 1)));
	FAILED(reallocarray(block, HIDE(SIZE_MAX), HIDE(2)));
	/* realloc(p, 0) releases p in this C library. */
	t->frees++;
	t->free_bytes += malloc_usable_size(block);
	if (realloc(HIDE(block), HIDE(0)))
		abort();
	/* From one place, calls that nest and calls that do not. */
	for (int i = 0; i < 3; i++) {
		void *grown = MADE(77, realloc(HIDE((void *)NULL), HIDE(77)));
		void *plain = MADE(77, malloc(HIDE(77)));

		release(t, grown);
		release(t, plain);
	}
}

static void failing_calls(struct tally *t)
{
	void *block = NULL;

	FAILED(malloc(HIDE((size_t)PTRDIFF_MAX + 1)));
	FAILED(malloc(HIDE(SIZE_MAX)));
	FAILED(malloc(HIDE((size_t)1 << 47)));
	FAILED(calloc(HIDE(SIZE_MAX), HIDE(2)));
	FAILED(calloc(HIDE((size_t)1 << 24), HIDE((size_t)1 << 23)));
	FAILED(memalign(HIDE(64), HIDE((size_t)1 << 47)));
	FAILED(realloc(HIDE((void *)NULL), HIDE((size_t)1 << 47)));
	FAILED(posix_memalign(&block, HIDE(3), HIDE(10)) == 0);
	FAILED(posix_memalign(&block, HIDE(64), HIDE((size_t)1 << 47)) == 0);
	for (int i = 0; i < 4; i++)
		free(HIDE((void *)NULL));
}

static void *work(void *argument)
{
	long self = (long)argument;
	struct tally *t = &tallies[self];

	t->tid = syscall(SYS_gettid);
	pthread_barrier_wait(&barrier);
	for (int round = 0; round < rounds; round++) {
		new_blocks(t);
		resized_blocks(t);
		failing_calls(t);
		for (int i = 0; i < BATCH; i++)
			mail[self][i] = MADE(i * 8, malloc(HIDE(i * 8)));
		pthread_barrier_wait(&barrier);
		for (int i = 0; i < BATCH; i++)
			release(t, mail[(self + 1) % threads][i]);
		if (threads > 1)
			t->remote += BATCH;
		pthread_barrier_wait(&barrier);
	}
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* say prints without an allocation: dprintf makes a buffer. */
static void say(const char *format, ...)
{
	char line[256];
	va_list arguments;

	va_start(arguments, format);
	if (write(1, line, vsnprintf(line, sizeof(line), format, arguments)) < 0)
		abort();
	va_end(arguments);
}

static void wait_for_line(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

int main(int argc, char **argv)
{
	pthread_t handles[MAX_THREADS];

	threads = argc > 1 ? atoi(argv[1]) : 1;
	rounds = argc > 2 ? atoi(argv[2]) : 10;
	if (threads < 1 || threads > MAX_THREADS)
		return 2;
	pthread_barrier_init(&barrier, NULL, threads + 1);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&handles[i], NULL, work, (void *)i))
			return 1;
	say("ready\n");
	wait_for_line();
	pthread_barrier_wait(&barrier);
	for (int round = 0; round < rounds; round++) {
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
	}
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < threads; i++) {
		struct tally *t = &tallies[i];

		say("thread %ld %lu %lu %lu %lu %lu %lu %lu %lu\n", t->tid, t->allocs, t->alloc_bytes, t->frees,
		    t->free_bytes, t->reallocs, t->realloc_bytes, t->failed, t->remote);
	}
	say("done\n");
	wait_for_line();
	for (int i = 0; i < threads; i++)
		pthread_join(handles[i], NULL);
	return 0;
}
