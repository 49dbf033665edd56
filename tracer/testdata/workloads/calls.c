// Calls the allocator a known number of times when told to.
//
// Reads lines "CALLS THREADS" from standard input. For each, THREADS threads make CALLS
// calls of malloc and of free each, with a size nobody else uses, then "done" is printed.
// "ready" is printed first.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define SIZE 4242
#define MAX_THREADS 64

static long calls;

static void *allocate(void *unused)
{
	for (long i = 0; i < calls; i++) {
		void *volatile block = malloc(SIZE);
		free(block);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[MAX_THREADS];
	int count;

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (scanf("%ld %d", &calls, &count) == 2 && count <= MAX_THREADS) {
		for (int i = 0; i < count; i++)
			if (pthread_create(&threads[i], NULL, allocate, NULL))
				return 1;
		for (int i = 0; i < count; i++)
			pthread_join(threads[i], NULL);
		puts("done");
	}
	return 0;
}
