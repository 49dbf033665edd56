/* Pairs of malloc and free with some work between: about a million a second and thread. For
 * each line of input, THREADS threads make PAIRS pairs each. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static long pairs;

static void *loop(void *unused)
{
	(void)unused;
	for (long i = 0; i < pairs; i++) {
		void *volatile block = malloc(64 + i % 64);

		for (volatile int work = 0; work < 400; work++)
			;
		free(block);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t thread[64];
	char line[64];

	pairs = argc > 2 ? atol(argv[2]) : 1000;
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = 1; i < threads; i++)
			pthread_create(&thread[i], NULL, loop, NULL);
		loop(NULL);
		for (int i = 1; i < threads; i++)
			pthread_join(thread[i], NULL);
		puts("done");
		fflush(stdout);
	}
	return 0;
}
