/*
 * Children. After a line on standard input it makes as many as the first argument says: each
 * prints "child PID", waits for a line of its own on a pipe, makes ALLOCS blocks of
 * 100 + its index bytes, and ends. One child more executes this program again ("again"), which
 * does the same with 300 bytes; one is made by vfork and ends at once.
 *
 * The parent reads commands: "go" lets all children allocate and waits for them, then prints
 * "done"; it has made no block itself since "ready".
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALLOCS = 50, MAX_CHILDREN = 64 };

static void say(const char *format, long value)
{
	char line[64];

	if (write(1, line, snprintf(line, sizeof(line), format, value)) < 0)
		abort();
}

static void wait_for_line(int file)
{
	char c;

	while (read(file, &c, 1) == 1 && c != '\n')
		;
}

static void allocate(size_t size)
{
	for (int i = 0; i < ALLOCS; i++) {
		void *volatile block = malloc(size);

		free(block);
	}
}

static void child(int gate, size_t size)
{
	say("child %ld\n", getpid());
	wait_for_line(gate);
	allocate(size);
	_exit(0);
}

int main(int argc, char **argv)
{
	int children = argc > 1 ? atoi(argv[1]) : 1, gates[MAX_CHILDREN + 1][2], status;
	pid_t pid;

	if (argc > 2 && strcmp(argv[1], "again") == 0)
		child(atoi(argv[2]), 300);
	if (children < 1 || children > MAX_CHILDREN)
		return 2;
	say("ready\n", 0);
	wait_for_line(0);
	for (int i = 0; i <= children; i++) {
		char gate[16];

		if (pipe(gates[i]))
			return 1;
		snprintf(gate, sizeof(gate), "%d", gates[i][0]);
		pid = fork();
		if (pid == 0 && i < children)
			child(gates[i][0], 100 + i);
		if (pid == 0)
			execl("/proc/self/exe", "forks", "again", gate, (char *)NULL);
	}
	pid = vfork();
	if (pid == 0)
		_exit(0);
	say("made\n", 0);
	wait_for_line(0);
	for (int i = 0; i <= children; i++)
		if (write(gates[i][1], "\n", 1) != 1)
			return 1;
	while (wait(&status) > 0)
		;
	say("done\n", 0);
	wait_for_line(0);
	return 0;
}
