/*
 * Memory calls of every kind with known sums, between two lines on standard input; blocks of
 * malloc, small and large, among them. A line tells what is to be seen:
 *
 *   function NAME MAPS MAPPED LIVE     calls and bytes of each site
 *   totals MAPPED UNMAPPED BRK DISCARDED
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (1UL << 20)

static char *anonymous(size_t length)
{
	char *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		exit(1);
	return at;
}

/* Eight mappings of 1 MiB; five are unmapped whole, one in its middle. */
__attribute__((noinline)) static void several(void)
{
	char *at[8];

	for (int i = 0; i < 8; i++) {
		at[i] = anonymous(MIB);
		memset(at[i], 1, MIB);
	}
	for (int i = 0; i < 5; i++)
		munmap(at[i], MIB);
	munmap(at[6] + MIB / 4, MIB / 2);
}

/* 4 MiB, of which another function replaces the second. */
__attribute__((noinline)) static char *underneath(void)
{
	char *volatile at = anonymous(4 * MIB); /* no tail call */

	return at;
}

__attribute__((noinline)) static void replaces(char *at)
{
	if (mmap(at + MIB, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		exit(1);
}

/* 1 MiB grows to 3 MiB, which moves it, and shrinks to 2 MiB. */
__attribute__((noinline)) static void resizes(void)
{
	char *at = anonymous(2 * MIB);

	munmap(at + MIB, MIB);
	mmap(at + MIB, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	at = mremap(at, MIB, 3 * MIB, MREMAP_MAYMOVE);
	if (at == MAP_FAILED || mremap(at, 3 * MIB, 2 * MIB, 0) == MAP_FAILED)
		exit(1);
}

__attribute__((noinline)) static void moves_break(void)
{
	if (sbrk(3 * MIB) == (void *)-1)
		exit(1);
	sbrk(-(long)MIB);
}

__attribute__((noinline)) static void discards(char *at)
{
	madvise(at + 2 * MIB, MIB, MADV_DONTNEED);
}

/* Malloc's own: none of it is to be seen. */
__attribute__((noinline)) static void blocks(void)
{
	void *volatile large = malloc(8 * MIB), *volatile small[1000];

	for (int i = 0; i < 1000; i++)
		small[i] = malloc(10000);
	large = realloc(large, 40 * MIB);
	free(large);
	for (int i = 0; i < 1000; i++)
		free(small[i]);
	malloc_trim(0);
}

static void await_line(void)
{
	char line[16];

	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

int main(void)
{
	char *at;

	printf("ready\n");
	fflush(stdout);
	await_line();
	several();
	at = underneath();
	replaces(at);
	resizes();
	discards(at);
	blocks();
	moves_break();
	mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* is refused */
	munmap((void *)1, 4096);				      /* is refused */
	printf("function several 8 %lu %lu\n", 8 * MIB, 2 * MIB + MIB / 2);
	printf("function underneath 1 %lu %lu\n", 4 * MIB, 3 * MIB);
	printf("function replaces 1 %lu %lu\n", MIB, MIB);
	printf("function resizes 3 %lu %lu\n", 2 * MIB + 4096 + 2 * MIB, 2 * MIB + 4096);
	printf("totals %lu %lu %ld %lu\n", 8 * MIB + 4 * MIB + MIB + 4 * MIB + 4096,
	       5 * MIB + MIB / 2 + MIB + MIB + MIB, 2 * (long)MIB, MIB);
	printf("done\n");
	fflush(stdout);
	await_line();
	return 0;
}
