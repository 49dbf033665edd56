/*
 * Threads that are easily mixed up. After a line on standard input:
 *
 * - threads one after the other that were given the same thread id (by asking the kernel
 *   for it, which needs root): the first allocates 3 blocks of 100 bytes, the second 5 of 200;
 * - a forked child that allocates 1000 blocks, which are not this process's;
 * - a child that shares the memory (vfork) and allocates, which is not this process either.
 *
 * Prints "tid TID" when both threads had it, "done" at the end, and waits for a line.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct order {
	const char *name;
	int blocks;
	size_t size;
	pid_t tid;
	pid_t wanted; /* allocate only as this thread; 0 = any */
};

static void say(const char *format, long value)
{
	char line[64];

	if (write(1, line, snprintf(line, sizeof(line), format, value)) < 0)
		abort();
}

static void wait_for_line(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

static void allocate(int blocks, size_t size)
{
	for (int i = 0; i < blocks; i++) {
		void *volatile block = malloc(size);

		free(block);
	}
}

static void *run(void *argument)
{
	struct order *order = argument;

	prctl(PR_SET_NAME, order->name);
	order->tid = syscall(SYS_gettid);
	if (!order->wanted || order->tid == order->wanted)
		allocate(order->blocks, order->size);
	return NULL;
}

static void run_thread(struct order *order)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, order) || pthread_join(thread, NULL))
		abort();
	/* The id is free when the thread has left the kernel too. */
	while (syscall(SYS_tgkill, getpid(), order->tid, 0) == 0)
		usleep(100);
}

/* The kernel gives away the number after the last one, if that is free. */
static void ask_for(pid_t tid)
{
	int file = open("/proc/sys/kernel/ns_last_pid", O_WRONLY);
	char text[16];

	if (file < 0 || write(file, text, snprintf(text, sizeof(text), "%d", tid - 1)) < 0)
		abort();
	close(file);
}

int main(void)
{
	struct order first = { "first", 3, 100, 0, 0 };
	int status;
	pid_t child;

	say("ready\n", 0);
	wait_for_line();
	run_thread(&first);
	for (int attempt = 0; attempt < 10000; attempt++) {
		struct order second = { "second", 5, 200, 0, first.tid };

		ask_for(first.tid);
		run_thread(&second);
		if (second.tid == first.tid) {
			say("tid %ld\n", first.tid);
			break;
		}
	}
	child = fork();
	if (child == 0) {
		allocate(1000, 300);
		_exit(0);
	}
	waitpid(child, &status, 0);
	child = vfork();
	if (child == 0) {
		allocate(1000, 300);
		_exit(0);
	}
	waitpid(child, &status, 0);
	say("done\n", 0);
	wait_for_line();
	return 0;
}
