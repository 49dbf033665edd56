/*
 * Allocates and releases without end, from three functions in known shares (4 : 2 : 1), with
 * work between that makes it about a million pairs a second untraced. Answers each line of
 * its input with "pairs COUNT bytes BYTES ns TIME", all since its start.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static unsigned long pairs, bytes;

static unsigned long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ul + t.tv_nsec;
}

__attribute__((noinline)) static void work(void)
{
	for (volatile int i = 0; i < 400; i++)
		;
}

static void pair(size_t size)
{
	void *volatile block = malloc(size);

	work();
	free(block);
	pairs++;
	bytes += size;
}

__attribute__((noinline)) static void often(void)
{
	for (int i = 0; i < 4; i++)
		pair(256);
}

__attribute__((noinline)) static void sometimes(void)
{
	for (int i = 0; i < 2; i++)
		pair(256);
}

__attribute__((noinline)) static void seldom(void)
{
	pair(256);
	__asm__ volatile("");
}

int main(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	unsigned long start = now();
	char line[64];

	setvbuf(stdout, NULL, _IOLBF, 256);
	puts("ready");
	for (;;) {
		for (int i = 0; i < 1000; i++) {
			often();
			sometimes();
			seldom();
		}
		if (poll(&input, 1, 0) > 0) {
			if (read(0, line, sizeof(line)) <= 0)
				return 0;
			printf("pairs %lu bytes %lu ns %lu\n", pairs, bytes, now() - start);
		}
	}
}
