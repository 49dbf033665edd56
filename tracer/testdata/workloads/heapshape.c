/* heapshape: shapes its heap on command and tells what it made.
 *
 * Reads one command a line from standard input and answers each with a line:
 *   holes N SIZE     N blocks, every other one freed
 *   pins N SIZE      N blocks with a pin of 16 bytes after each, the blocks freed
 *   mixed N          N blocks of 16 bytes to 100 KB, about half of them freed at random
 *   large N          N blocks of different large sizes, freed between pins
 *   fast N SIZE      N small blocks freed: the thread cache, then the fast bins
 *   top SIZE         SIZE bytes touched and given back to the top
 *   untouched SIZE   SIZE bytes given back to the top without having been written
 *   reread SIZE      SIZE bytes in the middle of the heap, dropped, then only read
 *   mmapped N SIZE   N blocks of SIZE, each with a mapping of its own
 *   drift SIZE       a block of SIZE mapped and freed: the mmap threshold rises
 *   sbrk SIZE        somebody else takes SIZE bytes of the brk heap
 *   threads N K      N threads with K mixed blocks each; they wait
 *   end              those threads end
 *   busy N           N threads allocate hard until "calm"
 *   calm
 *   trim             malloc_trim(0): "trimmed RETURNED RSS_BEFORE RSS_AFTER"
 *   scribble KIND    damages its own heap: "link", "size", "loop", "bins"
 *   info             "mallinfo" with the ten numbers, malloc_info's XML, "done"
 * All input and output goes through static buffers: answering does not change the heap.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* mallinfo, before 2.33 */

#define MAX_BLOCKS (1 << 22)
#define MAX_THREADS 256
#define HELD 512

/* mallinfo2 came with 2.33; the program is linked against older libraries as well. */
struct ten_numbers { size_t field[10]; };
extern struct ten_numbers newer_mallinfo(void) __asm__("mallinfo2") __attribute__((weak));

static void *blocks[MAX_BLOCKS];
static pthread_t threads[MAX_THREADS];
static int thread_count;
static pthread_barrier_t shaped;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static int open_gate;
static volatile int calm;
static volatile char seen;
static char input[4096], output[1 << 16], text[256];

static uint64_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

static void *touched(size_t size)
{
	char *block = malloc(size);
	if (!block)
		abort();
	memset(block, 1, size);
	__asm__ volatile("" : : "r"(block) : "memory"); /* the writing is not for show */
	return block;
}

static void release(long n, long step)
{
	for (long i = 0; i < n; i += step)
		free(blocks[i]);
}

static void holes(long n, long size)
{
	for (long i = 0; i < n; i++)
		blocks[i] = touched(size);
	release(n, 2);
}

static void pins(long n, long size)
{
	for (long i = 0; i < n; i++) {
		blocks[i] = touched(size);
		touched(16);
	}
	release(n, 1);
}

static void mixed(long n, uint64_t seed)
{
	void *recent[HELD] = {0};
	for (long i = 0; i < n; i++) {
		size_t size = 16 + random_next(&seed) % (random_next(&seed) % 16 ? 2000 : 100000);
		uint64_t slot = random_next(&seed) % HELD;
		if (random_next(&seed) % 2)
			free(recent[slot]); /* else it stays for ever */
		recent[slot] = touched(size);
	}
}

static void large(long n)
{
	for (long i = 0; i < n; i++) {
		blocks[i] = touched(1500 + (i * 7919) % 120000);
		touched(24);
	}
	release(n, 1);
	touched(100000); /* sorts the unsorted list into the bins */
}

static void fast(long n, long size)
{
	for (long i = 0; i < n; i++)
		blocks[i] = touched(size);
	release(n, 1);
}

/* 32 MiB is the most that glibc takes for the mmap threshold. */
static void keep_in_heap(void)
{
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

static void untouched(long size)
{
	keep_in_heap();
	void *volatile block = malloc(size);
	free(block);
}

static void reread(long size)
{
	keep_in_heap();
	volatile char *block = touched(size);
	touched(16);
	free((void *)block);
	malloc_trim(0);
	block = malloc(size);
	for (long i = 0; i < size; i += 4096)
		seen += block[i];
	free((void *)block);
}

/* Seeds carry the thread's number above 32 bits of its count of blocks. */
static void *shape(void *seed)
{
	mixed((uintptr_t)seed & 0xffffffff, (uintptr_t)seed >> 32);
	pthread_barrier_wait(&shaped);
	pthread_mutex_lock(&gate);
	while (!open_gate)
		pthread_cond_wait(&opened, &gate);
	pthread_mutex_unlock(&gate);
	return NULL;
}

static void *hard(void *seed)
{
	void *mine[HELD] = {0};
	uint64_t state = (uintptr_t)seed;
	while (!calm) {
		uint64_t r = random_next(&state);
		free(mine[r % HELD]);
		mine[r % HELD] = malloc(16 + random_next(&state) % (r % 64 ? 3000 : 300000));
	}
	for (int i = 0; i < HELD; i++)
		free(mine[i]);
	return NULL;
}

static void start(void *(*function)(void *), long n, long k)
{
	pthread_barrier_init(&shaped, NULL, n + 1);
	open_gate = calm = 0;
	for (long i = 0; i < n; i++)
		pthread_create(&threads[thread_count++], NULL, function, (void *)(uintptr_t)((i + 1) << 32 | k));
	if (function == shape)
		pthread_barrier_wait(&shaped);
}

static void join(void)
{
	pthread_mutex_lock(&gate);
	open_gate = 1;
	pthread_cond_broadcast(&opened);
	pthread_mutex_unlock(&gate);
	calm = 1;
	while (thread_count > 0)
		pthread_join(threads[--thread_count], NULL);
}

/* Resident bytes, read without allocating. */
static long resident(void)
{
	int fd = open("/proc/self/smaps_rollup", O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	char *rss = strstr(text, "Rss:");
	return rss ? atol(rss + 4) * 1024 : 0;
}

/* Damages the heap: a link, a size, a list that never ends, the main arena's own bins. */
static void scribble(const char *kind)
{
	for (int i = 0; i < 16; i++)
		blocks[i] = touched(5000);
	release(16, 2);
	size_t *chunk = (size_t *)blocks[6] - 2;
	size_t *oldest = (size_t *)blocks[0] - 2; /* its fd is the list's head */
	if (!strcmp(kind, "link"))
		chunk[2] = 0x4141414141414140;
	else if (!strcmp(kind, "size"))
		chunk[1] = 0x10000000001;
	else if (!strcmp(kind, "loop"))
		chunk[2] = chunk[3] = (size_t)chunk;
	else
		memset((char *)oldest[2] + 16, 0x41, 1024);
}

static void info(void)
{
	struct ten_numbers ten;
	if (newer_mallinfo) {
		ten = newer_mallinfo();
	} else {
		struct mallinfo older = mallinfo();
		for (int i = 0; i < 10; i++)
			ten.field[i] = ((unsigned *)&older)[i];
	}
	printf("mallinfo");
	for (int i = 0; i < 10; i++)
		printf(" %zu", ten.field[i]);
	printf("\n");
	malloc_info(0, stdout);
	printf("done\n");
}

static void trim(void)
{
	long before = resident();
	int returned = malloc_trim(0);
	printf("trimmed %d %ld %ld\n", returned, before, resident());
}

static void obey(const char *verb, long n, long size, const char *word)
{
	if (!strcmp(verb, "holes"))
		holes(n, size);
	else if (!strcmp(verb, "pins"))
		pins(n, size);
	else if (!strcmp(verb, "mixed"))
		mixed(n, 1);
	else if (!strcmp(verb, "large"))
		large(n);
	else if (!strcmp(verb, "fast"))
		fast(n, size);
	else if (!strcmp(verb, "top"))
		free(touched(n));
	else if (!strcmp(verb, "untouched"))
		untouched(n);
	else if (!strcmp(verb, "reread"))
		reread(n);
	else if (!strcmp(verb, "mmapped"))
		for (long i = 0; i < n; i++)
			touched(size);
	else if (!strcmp(verb, "drift"))
		free(touched(n));
	else if (!strcmp(verb, "sbrk"))
		sbrk(n);
	else if (!strcmp(verb, "threads"))
		start(shape, n, size);
	else if (!strcmp(verb, "busy"))
		start(hard, n, 0);
	else if (!strcmp(verb, "end") || !strcmp(verb, "calm"))
		join();
	else if (!strcmp(verb, "scribble"))
		scribble(word);
}

int main(void)
{
	static char line[256], verb[32], word[32];
	setvbuf(stdin, input, _IOFBF, sizeof(input));
	setvbuf(stdout, output, _IOFBF, sizeof(output));
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		long n = 0, size = 0;
		if (sscanf(line, "%31s %ld %ld", verb, &n, &size) < 2)
			sscanf(line, "%*s %31s", word);
		if (!strcmp(verb, "info")) {
			info();
		} else if (!strcmp(verb, "trim")) {
			trim();
		} else {
			obey(verb, n, size, word);
			printf("ok\n");
		}
		fflush(stdout);
	}
	return 0;
}
