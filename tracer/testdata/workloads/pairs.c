/*
 * Times pairs of malloc and free. Reads lines "PAIRS DEPTH" and answers each with "ns
 * NANOSECONDS", the time of one pair, called DEPTH functions below its thread's start.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ul + t.tv_nsec;
}

__attribute__((noinline)) static void pairs(long count)
{
	for (long i = 0; i < count; i++) {
		void *volatile block = malloc(64);

		free(block);
	}
}

__attribute__((noinline)) static void descend(long count, int depth)
{
	if (depth > 0)
		descend(count, depth - 1);
	else
		pairs(count);
	__asm__ volatile(""); /* no tail call */
}

int main(void)
{
	char line[64];
	long count;
	int depth;

	setvbuf(stdout, NULL, _IOLBF, 256);
	puts("ready");
	while (fgets(line, sizeof(line), stdin) && sscanf(line, "%ld %d", &count, &depth) == 2) {
		unsigned long start;

		descend(count / 10, depth); /* warm up */
		start = now();
		descend(count, depth);
		printf("ns %.1f\n", (double)(now() - start) / count);
	}
	return 0;
}
