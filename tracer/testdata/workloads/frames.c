// Prints the addresses of a stack whose functions and lines are known, and of static data;
// then waits for its standard input to end. The addresses come from glibc's backtrace.
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t static_lock = PTHREAD_MUTEX_INITIALIZER;
static long static_counters[64];
static int middle_line, outer_line;
static volatile int depth;

static __attribute__((noinline)) void take_stack(const char *what)
{
	void *addresses[32];
	int n = backtrace(addresses, 32);
	for (int i = 0; i < n; i++)
		printf("%s %p\n", what, addresses[i]);
	depth++;
}

static inline __attribute__((always_inline)) void inlined_leaf(void)
{
	take_stack("frame"), middle_line = __LINE__;
	depth++;
}

static inline __attribute__((always_inline)) void inlined_middle(void)
{
	inlined_leaf(), outer_line = __LINE__;
	depth++;
}

static __attribute__((noinline)) void outer_function(void)
{
	inlined_middle();
	depth++;
}

static void on_signal(int number)
{
	take_stack("signal");
	depth += number;
}

__attribute__((noinline)) void exported_entry(void)
{
	outer_function();
	depth++;
}

int main(void)
{
	signal(SIGUSR1, on_signal);
	exported_entry();
	raise(SIGUSR1);
	printf("middle_line %d\nouter_line %d\n", middle_line, outer_line);
	printf("lock %p\ncounter %p\n", (void *)&static_lock, (void *)&static_counters[3]);
	printf("ready\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
