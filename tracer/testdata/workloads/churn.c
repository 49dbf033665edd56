/* Allocates and frees blocks of 1000 bytes at a moderate rate, and keeps its own books: a
 * line "at REALTIME_NS ALLOCS BYTES" every 50 ms. Ends with its standard input. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 1000, BATCH = 50 };

static void *wait_for_end(void *unused)
{
	char byte;

	while (read(0, &byte, 1) > 0)
		;
	_exit(0);
	return unused;
}

static long long realtime(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(void)
{
	static char line[256];
	long long allocs = 0, told = 0;
	pthread_t waiter;

	setvbuf(stdout, line, _IOLBF, sizeof line);
	pthread_create(&waiter, NULL, wait_for_end, NULL);
	puts("ready");
	for (;;) {
		for (int i = 0; i < BATCH; i++) {
			void *volatile block = malloc(BLOCK);

			free(block);
			allocs++;
		}
		if (realtime() - told > 50000000) {
			told = realtime();
			printf("at %lld %lld %lld\n", told, allocs, allocs * BLOCK);
		}
		usleep(5000);
	}
}
