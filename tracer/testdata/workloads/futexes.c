/*
 * Futex calls whose outcomes the program counts itself: futexes. It says "ready", with a
 * thread asleep that sleeps to the end, and on "go" makes calls of every kind, each kind on a
 * word of its own. Then one line for each word, what its calls returned; then "done".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NR_WAKE = 454, NR_WAIT = 455, NR_WAITV = 449, FLAG_32 = 2, FLAG_PRIVATE = 128 };

#define ALL 0xffffffffL

/* A word and what calls on it returned. Counters are changed by several threads. */
struct word {
	const char *name;
	_Atomic int value;
	_Atomic long waits, eagain, timeouts, interrupted, wakes, empty, woken, requeued, handoffs;
};

enum { EAGAINS, TIMEOUTS, EMPTY, PINGPONG, FROM, TO, PI, OP, BITSET, NEWER, VECTOR, SIGNALS, EARLY, LATE, WORDS };
static struct word words[WORDS] = {
	{"eagains"}, {"timeouts"}, {"empty"}, {"pingpong"}, {"from"}, {"to"}, {"pi"}, {"op"}, {"bitset"}, {"newer"}, {"vector"},
	{"signals"}, {"early"}, {"late"},
};

static void counted_wait(struct word *w, long result)
{
	if (result >= 0)
		w->handoffs++;
	else if (errno == EAGAIN)
		w->eagain++;
	else if (errno == ETIMEDOUT)
		w->timeouts++;
	else if (errno == EINTR)
		w->interrupted++;
	w->waits += result >= 0 || errno != EAGAIN;
}

static void wait_on(struct word *w, int value, const struct timespec *timeout)
{
	counted_wait(w, syscall(SYS_futex, &w->value, FUTEX_WAIT_PRIVATE, value, timeout, NULL, 0));
}

static long counted_wake(struct word *w, long result)
{
	w->wakes++;
	w->empty += result == 0;
	w->woken += result > 0 ? result : 0;
	return result;
}

static long wake(struct word *w, int count)
{
	return counted_wake(w, syscall(SYS_futex, &w->value, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0));
}

static void pause_briefly(void)
{
	struct timespec t = {0, 200000};

	nanosleep(&t, NULL);
}

/* A thread that tells where it is, so that others can see it asleep. */
struct sleeper {
	pthread_t thread;
	void (*body)(struct sleeper *);
	_Atomic int tid;
	_Atomic int turn; /* of waiting, counted by the thread */
	int turns;
};

/* first_line reads the first line of a file of a thread. */
static char *first_line(int tid, const char *name, char *line, int size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, name);
	FILE *file = fopen(path, "r");
	char *text = file ? fgets(line, size, file) : NULL;

	if (file)
		fclose(file);
	return text;
}

/* A thread is asleep when it says so and is off its processor: between the two it can still be
 * woken without having slept. What /proc/…/syscall says of a running thread is "running". */
static void await_sleep(struct sleeper *s, int turn)
{
	char line[256], *text;

	while (s->turn < turn || !s->tid)
		pause_briefly();
	for (;;) {
		text = first_line(s->tid, "stat", line, sizeof(line));
		text = text ? strrchr(text, ')') : NULL;
		if (text && text[2] == 'S') {
			text = first_line(s->tid, "syscall", line, sizeof(line));
			if (text && strncmp(text, "running", 7) != 0)
				return;
		}
		pause_briefly();
	}
}

static void *start_sleeper(void *argument)
{
	struct sleeper *s = argument;

	s->tid = gettid();
	s->body(s);
	return NULL;
}

static void begin(struct sleeper *s, int turns, void (*body)(struct sleeper *))
{
	s->turns = turns;
	s->body = body;
	pthread_create(&s->thread, NULL, start_sleeper, s);
}

/* await_end waits without a futex call until the thread has ended, then joins it. */
static void await_end(struct sleeper *s)
{
	while (pthread_tryjoin_np(s->thread, NULL))
		pause_briefly();
}

/* Every turn waits once and is woken once. */
#define WAITS_IN_TURNS(name, call)                                                                                              \
	static void name(struct sleeper *s)                                                                                     \
	{                                                                                                                       \
		for (int i = 1; i <= s->turns; i++) {                                                                           \
			s->turn = i;                                                                                            \
			call;                                                                                                   \
		}                                                                                                               \
	}

WAITS_IN_TURNS(pingpong, wait_on(&words[PINGPONG], 0, NULL))
WAITS_IN_TURNS(from, wait_on(&words[FROM], 0, NULL))
WAITS_IN_TURNS(op, wait_on(&words[OP], 0, NULL))
WAITS_IN_TURNS(signals, wait_on(&words[SIGNALS], 0, &(struct timespec){3600}))
WAITS_IN_TURNS(early, wait_on(&words[EARLY], 0, NULL))
WAITS_IN_TURNS(late, wait_on(&words[LATE], 0, NULL))
WAITS_IN_TURNS(bitset, counted_wait(&words[BITSET], syscall(SYS_futex, &words[BITSET].value, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 4)))
WAITS_IN_TURNS(newer, counted_wait(&words[NEWER], syscall(NR_WAIT, &words[NEWER].value, 0L, ALL, FLAG_32 | FLAG_PRIVATE, NULL, 0)))

static void vector(struct sleeper *s)
{
	struct futex_waitv list[2] = {
		{0, (uintptr_t)&words[EMPTY].value, FLAG_32 | FLAG_PRIVATE, 0}, {0, (uintptr_t)&words[VECTOR].value, FLAG_32 | FLAG_PRIVATE, 0},
	};

	for (int i = 1; i <= s->turns; i++) {
		s->turn = i;
		counted_wait(&words[VECTOR], syscall(NR_WAITV, list, 2, 0, NULL, 0));
	}
}

static void pi(struct sleeper *s)
{
	for (int i = 1; i <= s->turns; i++) {
		s->turn = i;
		counted_wait(&words[PI], syscall(SYS_futex, &words[PI].value, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
		words[PI].wakes++;
		syscall(SYS_futex, &words[PI].value, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0);
		while (s->turn == i)
			pause_briefly();
		i = s->turn - 1;
	}
}

static void in_turns(int turns, void (*body)(struct sleeper *), void (*hand_on)(void))
{
	struct sleeper s = {0};

	begin(&s, turns, body);
	for (int i = 1; i <= turns; i++) {
		await_sleep(&s, i);
		hand_on();
	}
	await_end(&s);
}

static void wake_pingpong(void) { wake(&words[PINGPONG], 1); }
static void wake_bitset(void)
{
	counted_wake(&words[BITSET], syscall(SYS_futex, &words[BITSET].value, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 4));
}
static void wake_newer(void) { counted_wake(&words[NEWER], syscall(NR_WAKE, &words[NEWER].value, ALL, 1, FLAG_32 | FLAG_PRIVATE)); }
static void wake_vector(void) { counted_wake(&words[VECTOR], syscall(SYS_futex, &words[VECTOR].value, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0)); }

/* WAKE_OP on two words: the sleeper is at the second. The call counts for the first. */
static void wake_op(void)
{
	struct word *first = &words[EMPTY];
	long result = syscall(SYS_futex, &first->value, FUTEX_WAKE_OP_PRIVATE, 1, 1L, &words[OP].value,
			      FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0));

	counted_wake(first, result);
}

static void handle(int signal) { }
static struct sleeper signalled;
static void interrupt(void) { pthread_kill(signalled.thread, SIGUSR1); }

static void interrupts(int turns)
{
	struct sigaction action = {.sa_handler = handle};

	sigaction(SIGUSR1, &action, NULL);
	begin(&signalled, turns, signals);
	for (int i = 1; i <= turns; i++) {
		await_sleep(&signalled, i);
		interrupt();
	}
	await_end(&signalled);
}

/* The lock is held by this thread until the other sleeps for it. */
static void pi_turns(int turns)
{
	struct sleeper s = {0};

	for (int i = 1; i <= turns; i++) {
		words[PI].value = gettid();
		if (i == 1)
			begin(&s, turns, pi);
		else
			s.turn = i;
		while (!(words[PI].value & FUTEX_WAITERS))
			pause_briefly();
		await_sleep(&s, i);
		words[PI].wakes++;
		words[PI].woken++;
		syscall(SYS_futex, &words[PI].value, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0);
		while (words[PI].handoffs < i || words[PI].wakes < 2 * i || words[PI].value)
			pause_briefly();
	}
	s.turn = turns + 1;
	await_end(&s);
}

enum { MOVED = 5 };

static void requeues(void)
{
	struct sleeper s[MOVED] = {0};
	long result;

	for (int i = 0; i < MOVED; i++) {
		begin(&s[i], 1, from);
		await_sleep(&s[i], 1);
	}
	result = syscall(SYS_futex, &words[FROM].value, FUTEX_CMP_REQUEUE_PRIVATE, 1, 1000L, &words[TO].value, 0);
	words[FROM].requeued = result - 1;
	words[FROM].woken = 1;
	/* They wait at both words. */
	words[TO].waits = result - 1;
	await_end(&s[0]);
	for (int i = 1; i < MOVED; i++) {
		wake(&words[TO], 1);
		await_end(&s[i]);
	}
	words[TO].handoffs = result - 1;
	words[FROM].handoffs -= result - 1;
}

int main(void)
{
	static struct sleeper first, last;
	char line[16];

	begin(&first, 1, early);
	await_sleep(&first, 1);
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (int i = 0; i < 100; i++)
		wait_on(&words[EAGAINS], 1, NULL);
	for (int i = 0; i < 7; i++)
		wait_on(&words[TIMEOUTS], 0, &(struct timespec){0, 1000000});
	for (int i = 0; i < 50; i++)
		wake(&words[EMPTY], 1);
	in_turns(40, pingpong, wake_pingpong);
	in_turns(5, op, wake_op);
	in_turns(5, bitset, wake_bitset);
	if (syscall(NR_WAKE, &words[NEWER].value, ALL, 1, FLAG_32 | FLAG_PRIVATE) == 0) {
		words[NEWER].wakes++;
		words[NEWER].empty++;
		in_turns(5, newer, wake_newer);
	}
	in_turns(5, vector, wake_vector);
	interrupts(5);
	pi_turns(5);
	requeues();
	begin(&last, 1, late);
	await_sleep(&last, 1);
	for (struct word *w = words; w < words + WORDS; w++)
		printf("word %s %p %ld %ld %ld %ld %ld %ld %ld %ld %ld\n", w->name, (void *)&w->value, w->waits, w->eagain, w->timeouts,
		       w->interrupted, w->wakes, w->empty, w->woken, w->requeued, w->handoffs);
	puts("done");
	fgets(line, sizeof(line), stdin);
	_exit(0);
}
