/*
 * Threads that spend their time each in one way: on a CPU, yielding it, asleep by the clock,
 * waiting for each other, reading a pipe. They are born at the first line of input ("born"),
 * stand at a barrier until the second, work, and stand at the barrier again until the third;
 * then all ends. Each tells "thread TID WHAT ASLEEP_NS": the least that it has slept in its way.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 100, PAUSE_NS = 3000000, SPINS = 20000000 };

static pthread_barrier_t gate;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turn;
static int ends[2];
static volatile long sink;

static void pause_once(void)
{
	struct timespec t = {0, PAUSE_NS};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static long spin(void)
{
	for (int i = 0; i < SPINS; i++)
		sink++;
	return 0;
}

static long yield(void)
{
	for (int i = 0; i < 1000; i++)
		usleep(0);
	return 0;
}

static long clocked(void)
{
	for (int i = 0; i < ROUNDS; i++)
		pause_once();
	return (long)ROUNDS * PAUSE_NS;
}

/* The two take turns; each lets the other wait for a pause. */
static long take_turns(int mine)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < ROUNDS; i++) {
		while (turn != mine)
			pthread_cond_wait(&turned, &lock);
		pthread_mutex_unlock(&lock);
		pause_once();
		pthread_mutex_lock(&lock);
		turn = 1 - mine;
		pthread_cond_signal(&turned);
	}
	pthread_mutex_unlock(&lock);
	return (long)(ROUNDS - 1) * PAUSE_NS;
}

static long first(void) { return take_turns(0); }
static long second(void) { return take_turns(1); }

static long reads(void)
{
	char c;

	for (int i = 0; i < ROUNDS; i++)
		if (read(ends[0], &c, 1) != 1)
			abort();
	return (long)ROUNDS * PAUSE_NS;
}

static long writes(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		pause_once();
		if (write(ends[1], "x", 1) != 1)
			abort();
	}
	return (long)ROUNDS * PAUSE_NS;
}

static const struct role {
	const char *what;
	long (*work)(void);
} roles[] = {{"cpu", spin}, {"cpu", yield}, {"idle", clocked}, {"futex", first}, {"futex", second}, {"other", reads}, {"idle", writes}};

static void *run(void *argument)
{
	const struct role *role = argument;
	long asleep;

	pthread_barrier_wait(&gate);
	asleep = role->work();
	printf("thread %d %s %ld\n", gettid(), role->what, asleep);
	pthread_barrier_wait(&gate);
	return NULL;
}

static void await_line(void)
{
	char line[16];

	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

int main(void)
{
	enum { THREADS = sizeof(roles) / sizeof(*roles) };
	pthread_t threads[THREADS];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (pipe(ends))
		return 1;
	pthread_barrier_init(&gate, NULL, THREADS + 1);
	puts("ready");
	await_line();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, (void *)&roles[i]);
	puts("born");
	await_line();
	pthread_barrier_wait(&gate);
	await_line();
	pthread_barrier_wait(&gate);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
