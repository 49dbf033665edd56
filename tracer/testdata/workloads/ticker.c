/* Allocates and releases a block of 1000 bytes every millisecond until SIGTERM. */
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stopping;

static void stop(int signal)
{
	(void)signal;
	stopping = 1;
}

__attribute__((noinline)) static void tick(void)
{
	void *volatile block = malloc(1000);

	free(block);
}

int main(void)
{
	const struct timespec time = { 0, 1000000 };

	signal(SIGTERM, stop);
	if (write(1, "ready\n", 6) != 6)
		return 1;
	while (!stopping) {
		tick();
		nanosleep(&time, NULL);
	}
	return 5;
}
