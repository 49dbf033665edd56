/*
 * Threads that come and go: after a line on standard input, as many as the first argument
 * says, 50 at a time, each of which makes 10 blocks of 333 bytes and ends. Prints "done".
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { AT_ONCE = 50, BLOCKS = 10 };

static __attribute__((noinline)) void *storm_worker(void *unused)
{
	for (int i = 0; i < BLOCKS; i++) {
		void *volatile block = malloc(333);

		free(block);
	}
	return unused;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1000;
	pthread_t handles[AT_ONCE];

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	getchar();
	for (int made = 0; made < threads; made += AT_ONCE) {
		for (int i = 0; i < AT_ONCE; i++)
			if (pthread_create(&handles[i], NULL, storm_worker, NULL))
				return 1;
		for (int i = 0; i < AT_ONCE; i++)
			pthread_join(handles[i], NULL);
	}
	puts("done");
	while (getchar() != EOF)
		;
	return 0;
}
