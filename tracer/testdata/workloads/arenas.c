/*
 * Threads that take arenas, one after the other, and say which: argument 1 is how many
 * threads make one each. Each waits for a line on standard input.
 *
 *   arena TID ADDRESS     of each thread, its arena: the start of the heap that its block lies in
 *   arenas N              as malloc_info counts them
 *   threshold BYTES       after a mapped block of that many bytes was freed
 *   trim TID RETURNED     what malloc_trim says, with 32 MiB of holes before it
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAP_BYTES (64UL << 20)
#define HOLES 8192
#define HOLE_BYTES 4096
#define LARGE_BYTES (3UL << 20)

static pthread_barrier_t all_have_one;

__attribute__((noinline)) static void *first_block(void)
{
	void *volatile block = malloc(100);

	return block;
}

static void *take_arena(void *unused)
{
	void *block = first_block();

	(void)unused;
	flockfile(stdout);
	printf("arena %d %#lx\n", gettid(), (uintptr_t)block & ~(HEAP_BYTES - 1));
	fflush(stdout);
	funlockfile(stdout);
	pthread_barrier_wait(&all_have_one);
	return NULL;
}

static void run(int threads)
{
	pthread_t thread[threads];

	pthread_barrier_init(&all_have_one, NULL, threads);
	for (int i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, take_arena, NULL);
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&all_have_one);
}

static int count_arenas(void)
{
	char *text = NULL;
	size_t length;
	int count = 0;
	FILE *out = open_memstream(&text, &length);

	malloc_info(0, out);
	fclose(out);
	for (char *at = text; (at = strstr(at, "<heap nr=")); at++)
		count++;
	free(text);
	return count;
}

__attribute__((noinline)) static void free_large(void)
{
	void *volatile block = malloc(LARGE_BYTES);

	memset(block, 1, LARGE_BYTES);
	free(block);
	printf("threshold %zu\n", LARGE_BYTES + 4096);
}

__attribute__((noinline)) static void trim_holes(void)
{
	static void *block[HOLES];

	for (int i = 0; i < HOLES; i++) {
		block[i] = malloc(HOLE_BYTES);
		memset(block[i], 1, HOLE_BYTES);
	}
	for (int i = 0; i < HOLES - 1; i++)
		free(block[i]);
	printf("trim %d %d\n", gettid(), malloc_trim(0));
	free(block[HOLES - 1]);
}

static void await_line(void)
{
	char line[16];

	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 4;

	printf("ready\n");
	fflush(stdout);
	await_line();
	run(threads);
	printf("arenas %d\n", count_arenas());
	run(1); /* in an arena that is free by now */
	free_large();
	trim_holes();
	printf("done\n");
	fflush(stdout);
	await_line();
	return 0;
}
