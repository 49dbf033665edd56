/*
 * Rounds that are known. Each round allocates COUNT blocks of SIZE bytes and frees them, and
 * KEPT more at a place of which it frees every second one, and KEPT more at a place of which it
 * frees none: what is left, the next round frees. A boundary is passed in every way
 * at once: a wait that times out, the function begin_round, a line on standard output, a
 * marker.
 *
 *   rounds PERIOD_US ROUNDS COUNT SIZE KEPT THREADS
 *
 * With more threads than one they hand the round on: each does its part of the blocks, and the
 * one that began the round waits.
 * Reads a line before it begins; ends with the lines "lifetime NS", the median of the blocks
 * that the next round freed, and "rounds N".
 */
#define _GNU_SOURCE
#define _SDT_HAS_SEMAPHORES 1
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/sdt.h>

#define step __attribute__((noinline))

enum { MOST_THREADS = 64, MOST_BLOCKS = 4096 };

__extension__ unsigned short memtrace_round_semaphore __attribute__((section(".probes")));

static int count, kept, threads;
static size_t size;
static void *carried[MOST_BLOCKS];
static long carried_since[MOST_BLOCKS];
static int carried_count;
static long *lifetimes;
static long lifetime_count;
static pthread_barrier_t barrier;
static volatile int ended;

/* allocate_round does one thread's part of the round's blocks. */
step void allocate_round(int part)
{
	void *blocks[MOST_BLOCKS];
	int n = 0;

	for (int i = part; i < count; i += threads)
		blocks[n++] = malloc(size);
	for (int i = 0; i < n; i++)
		free(blocks[i]);
}

static long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000 + time.tv_nsec;
}

/* keep_block makes a block that the next round frees: a place of its own. */
step void keep_block(void)
{
	carried_since[carried_count] = now();
	carried[carried_count++] = malloc(size);
}

/* carry_over frees what the last round has kept, and keeps some blocks for the next. */
step void carry_over(void)
{
	for (int i = 0; i < carried_count; i++) {
		lifetimes[lifetime_count++] = now() - carried_since[i];
		free(carried[i]);
	}
	carried_count = 0;
	for (int i = 0; i < kept; i++) {
		void *volatile block = malloc(size);

		if (i % 2) {
			free(block);
			continue;
		}
		carried_since[carried_count] = now();
		carried[carried_count++] = block;
	}
	for (int i = 0; i < kept; i++)
		keep_block();
}

step void begin_round(void)
{
	static const char *parts[] = { "x: rou", "nd beg", "ins\nand more\n" };

	for (unsigned i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (write(2, parts[i], strlen(parts[i])) < 0)
			exit(1);
	if (memtrace_round_semaphore)
		DTRACE_PROBE(memtrace, round);
}

static void *work(void *part)
{
	for (;;) {
		pthread_barrier_wait(&barrier);
		if (ended)
			return NULL;
		allocate_round((long)part);
		pthread_barrier_wait(&barrier);
	}
}

static int shorter(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}

static void one_round(void)
{
	begin_round();
	carry_over();
	if (threads > 1)
		pthread_barrier_wait(&barrier);
	allocate_round(0);
	if (threads > 1)
		pthread_barrier_wait(&barrier);
}

int main(int argc, char **argv)
{
	pthread_t workers[MOST_THREADS];
	long period = atol(argv[1]), rounds = atol(argv[2]);
	struct timespec time = { period / 1000000, period % 1000000 * 1000 };
	char line[16];

	if (argc < 7)
		return 2;
	count = atoi(argv[3]);
	size = atol(argv[4]);
	kept = atoi(argv[5]);
	threads = atoi(argv[6]);
	lifetimes = calloc(2 * rounds * kept + 1, sizeof(*lifetimes));
	pthread_barrier_init(&barrier, NULL, threads);
	for (long i = 1; i < threads; i++)
		pthread_create(&workers[i], NULL, work, (void *)i);
	if (write(1, "ready\n", 6) != 6 || read(0, line, sizeof(line)) <= 0)
		return 1;
	for (long round = 0; round < rounds; round++) {
		ppoll(NULL, 0, &time, NULL);
		one_round();
	}
	ppoll(NULL, 0, &time, NULL);
	begin_round();
	ended = 1;
	if (threads > 1)
		pthread_barrier_wait(&barrier);
	for (long i = 1; i < threads; i++)
		pthread_join(workers[i], NULL);
	qsort(lifetimes, lifetime_count, sizeof(*lifetimes), shorter);
	dprintf(1, "lifetime %ld\nrounds %ld\n", lifetimes[lifetime_count / 2], rounds);
	if (read(0, line, sizeof(line)) < 0)
		return 1;
	return 0;
}
