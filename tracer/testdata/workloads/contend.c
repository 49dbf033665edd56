/*
 * Ways in which eight threads on two processors wait, for each other or for work: contend
 * WAY. It says "ready" and goes on until it is ended.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 8 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t fair_mutex;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static sem_t permits, jobs_ready;
static int jobs;
static volatile unsigned long sink;

static void rest(long microseconds)
{
	struct timespec t = {microseconds / 1000000, microseconds % 1000000 * 1000};

	nanosleep(&t, NULL);
}

static long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void compute(long microseconds)
{
	for (long end = now_ns() + microseconds * 1000; now_ns() < end;)
		for (int i = 0; i < 100; i++)
			sink++;
}

static void wait_word(_Atomic int *word, int value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake_word(_Atomic int *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Threads come back at once to a lock that is held for a short sleep. */
static void convoy(int id)
{
	pthread_mutex_lock(&mutex);
	rest(50);
	pthread_mutex_unlock(&mutex);
}

/* A queue of waiters, each with a word of its own, handed over in order. */
struct waiter {
	struct waiter *_Atomic next;
	_Atomic int granted;
};

static struct waiter *_Atomic tail;

static void fifo(int id)
{
	static struct waiter waiters[THREADS];
	struct waiter *mine = &waiters[id], *next, *expected = mine;
	struct waiter *before;

	mine->next = NULL;
	mine->granted = 0;
	before = atomic_exchange(&tail, mine);
	if (before) {
		before->next = mine;
		while (!mine->granted)
			wait_word(&mine->granted, 0);
	}
	compute(5);
	if (!mine->next && atomic_compare_exchange_strong(&tail, &expected, NULL))
		return;
	while (!(next = mine->next))
		;
	next->granted = 1;
	wake_word(&next->granted);
}

static void pi(int id)
{
	pthread_mutex_lock(&fair_mutex);
	compute(5);
	pthread_mutex_unlock(&fair_mutex);
}

/* The lock is held for most of the time by threads that compute. */
static void saturated(int id)
{
	pthread_mutex_lock(&mutex);
	compute(200);
	pthread_mutex_unlock(&mutex);
}

/* One thread holds the lock for long, the others for an instant. */
static void longholder(int id)
{
	pthread_mutex_lock(&mutex);
	if (id == 0)
		rest(20000);
	else
		compute(5);
	pthread_mutex_unlock(&mutex);
	rest(200);
}

/* The lock is held for an instant and asked for often; mostly it is free. */
static void barging(int id)
{
	compute(20);
	pthread_mutex_lock(&mutex);
	compute(3);
	pthread_mutex_unlock(&mutex);
}

static void cpu(int id) { compute(1000); }

/* One thread brings a job now and then to seven that wait for it. */
static void pool(int id)
{
	if (id == 0) {
		rest(20000);
		pthread_mutex_lock(&mutex);
		jobs++;
		pthread_cond_signal(&work);
		pthread_mutex_unlock(&mutex);
		return;
	}
	pthread_mutex_lock(&mutex);
	while (jobs == 0)
		pthread_cond_wait(&work, &mutex);
	jobs--;
	pthread_mutex_unlock(&mutex);
	compute(50);
}

/* The same with a semaphore. */
static void queue(int id)
{
	if (id == 0) {
		rest(20000);
		sem_post(&jobs_ready);
		return;
	}
	sem_wait(&jobs_ready);
	compute(50);
}

/* All are woken for one job, again and again. */
static void herd(int id)
{
	pthread_mutex_lock(&mutex);
	if (id == 0) {
		jobs++;
		pthread_cond_broadcast(&work);
		pthread_mutex_unlock(&mutex);
		rest(500);
		return;
	}
	while (jobs == 0)
		pthread_cond_wait(&work, &mutex);
	jobs--;
	pthread_mutex_unlock(&mutex);
}

/* All allocate from one arena blocks that the caches of threads do not keep. */
static void arena(int id)
{
	void *blocks[32];

	for (int i = 0; i < 32; i++)
		blocks[i] = malloc(1500 + 8 * i);
	for (int i = 0; i < 32; i++)
		free(blocks[i]);
}

static void rwlock(int id)
{
	if (id < 2) {
		pthread_rwlock_wrlock(&table);
		rest(2000);
		pthread_rwlock_unlock(&table);
		rest(200);
		return;
	}
	pthread_rwlock_rdlock(&table);
	compute(20);
	pthread_rwlock_unlock(&table);
	rest(300);
}

/* Two may work, the others wait. */
static void semaphore(int id)
{
	sem_wait(&permits);
	rest(2000);
	sem_post(&permits);
}

/* Requests come by the clock; now and then two meet at a lock. */
static void healthy(int id)
{
	rest(4000 + 311 * id);
	compute(50);
	pthread_mutex_lock(&mutex);
	compute(5);
	pthread_mutex_unlock(&mutex);
}

/* A runtime's threads park when there is nothing to do; who finds work wakes the next. */
static void parking(int id)
{
	static _Atomic int parked[THREADS];
	static _Atomic int runnable;
	int next = id % (THREADS - 1) + 1, one = 1;

	if (id == 0) {
		rest(5000);
		atomic_fetch_add(&runnable, 3);
		if (atomic_compare_exchange_strong(&parked[next], &one, 0))
			wake_word(&parked[next]);
		return;
	}
	if (atomic_fetch_sub(&runnable, 1) > 0) {
		one = 1;
		if (runnable > 0 && atomic_compare_exchange_strong(&parked[next], &one, 0))
			wake_word(&parked[next]);
		compute(50);
		return;
	}
	atomic_fetch_add(&runnable, 1);
	parked[id] = 1;
	if (runnable <= 0)
		while (parked[id])
			wait_word(&parked[id], 1);
	parked[id] = 0;
}

static void idle(int id) { pause(); }

static const struct way {
	const char *name;
	void (*turn)(int);
} ways[] = {
	{"convoy", convoy}, {"fifo", fifo},	  {"pi", pi},	    {"saturated", saturated}, {"longholder", longholder}, {"barging", barging},
	{"cpu", cpu},	    {"pool", pool},	  {"queue", queue}, {"herd", herd},	      {"arena", arena},		  {"rwlock", rwlock},
	{"semaphore", semaphore}, {"healthy", healthy}, {"parking", parking}, {"idle", idle},
};

static const struct way *chosen;

static void *run(void *id)
{
	char name[16];

	snprintf(name, sizeof(name), "worker-%d", (int)(intptr_t)id);
	pthread_setname_np(pthread_self(), name);
	for (;;)
		chosen->turn((int)(intptr_t)id);
	return NULL;
}

static void stay_on_two_processors(void)
{
	cpu_set_t allowed, two;
	int count = 0;

	CPU_ZERO(&two);
	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int i = 0; i < CPU_SETSIZE && count < 2; i++)
		if (CPU_ISSET(i, &allowed)) {
			CPU_SET(i, &two);
			count++;
		}
	sched_setaffinity(0, sizeof(two), &two);
}

int main(int argc, char **argv)
{
	pthread_mutexattr_t inherits;
	pthread_t thread;

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (argc > 1 && strcmp(argv[1], ways[i].name) == 0)
			chosen = &ways[i];
	if (!chosen)
		return 2;
	stay_on_two_processors();
	pthread_mutexattr_init(&inherits);
	pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&fair_mutex, &inherits);
	sem_init(&permits, 0, 2);
	sem_init(&jobs_ready, 0, 0);
	if (chosen->turn == arena)
		mallopt(M_ARENA_MAX, 1);
	for (intptr_t id = 0; id < THREADS; id++)
		pthread_create(&thread, NULL, run, (void *)id);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
