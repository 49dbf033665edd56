/*
 * A library to preload: it counts the calls of the allocator in the process, independently
 * of memtrace, and keeps the sums in the file COUNTER_FILE (a macro), which is mapped so
 * that it is right to the last call of the process. The numbers, each 64 bits: allocs, bytes,
 * frees, bytes, reallocs, bytes, failed.
 *
 * Children count nothing: a forked one is switched off, and the file is given to the first
 * process that creates it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALLOCS, ALLOC_BYTES, FREES, FREE_BYTES, REALLOCS, REALLOC_BYTES, FAILED, SUMS };

static struct {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void *(*reallocarray)(void *, size_t, size_t);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	void *(*memalign)(size_t, size_t);
	void *(*valloc)(size_t);
	void (*free)(void *);
	size_t (*usable)(void *);
} real;

static uint64_t spare[SUMS], *sums = spare;
static int ready;

/* What dlsym itself allocates while the functions are looked up. */
static char early[65536];
static size_t early_used;

static void add(int which, uint64_t n)
{
	__atomic_fetch_add(&sums[which], n, __ATOMIC_RELAXED);
}

static void switch_off(void)
{
	sums = spare;
}

static void resolve(void)
{
	int file;
	void *mapped;

	if (ready)
		return;
	ready = 1; /* calls from here on are dlsym's own */
	real.calloc = dlsym(RTLD_NEXT, "calloc");
	real.realloc = dlsym(RTLD_NEXT, "realloc");
	real.reallocarray = dlsym(RTLD_NEXT, "reallocarray");
	real.posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
	real.aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
	real.memalign = dlsym(RTLD_NEXT, "memalign");
	real.valloc = dlsym(RTLD_NEXT, "valloc");
	real.free = dlsym(RTLD_NEXT, "free");
	real.usable = dlsym(RTLD_NEXT, "malloc_usable_size");
	real.malloc = dlsym(RTLD_NEXT, "malloc");
	file = open(COUNTER_FILE, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (file < 0 || ftruncate(file, sizeof(spare)))
		return;
	mapped = mmap(NULL, sizeof(spare), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (mapped != MAP_FAILED)
		sums = mapped;
	pthread_atfork(NULL, NULL, switch_off);
}

static void *serve_early(size_t size)
{
	void *block = early + early_used;

	early_used += (size + 15) & ~(size_t)15;
	return early_used <= sizeof(early) ? block : NULL;
}

static int is_early(const void *block)
{
	return (const char *)block >= early && (const char *)block < early + sizeof(early);
}

static void *made(void *block, size_t size)
{
	if (!block) {
		add(FAILED, 1);
		return NULL;
	}
	add(ALLOCS, 1);
	add(ALLOC_BYTES, size);
	return block;
}

void *malloc(size_t size)
{
	resolve();
	return real.malloc ? made(real.malloc(size), size) : serve_early(size);
}

void *calloc(size_t count, size_t size)
{
	resolve();
	return real.malloc ? made(real.calloc(count, size), count * size) : serve_early(count * size);
}

void free(void *block)
{
	if (!block || is_early(block))
		return;
	resolve();
	add(FREES, 1);
	add(FREE_BYTES, real.usable(block));
	real.free(block);
}

static void *resized(void *old, void *block, size_t size, size_t usable)
{
	if (!old)
		return made(block, size);
	if (!block && size == 0) {
		add(FREES, 1);
		add(FREE_BYTES, usable);
	} else if (!block) {
		add(FAILED, 1);
	} else {
		add(REALLOCS, 1);
		add(REALLOC_BYTES, size);
	}
	return block;
}

void *realloc(void *old, size_t size)
{
	resolve();
	if (is_early(old)) {
		void *block = malloc(size);

		return block ? memcpy(block, old, size) : NULL;
	}
	size_t usable = old ? real.usable(old) : 0;

	return resized(old, real.realloc(old, size), size, usable);
}

void *reallocarray(void *old, size_t count, size_t size)
{
	resolve();
	if (!real.reallocarray)
		return realloc(old, count * size);
	size_t usable = old ? real.usable(old) : 0;

	return resized(old, real.reallocarray(old, count, size), count * size, usable);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
	int error;

	resolve();
	error = real.posix_memalign(out, alignment, size);
	made(error ? NULL : *out, size);
	return error;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	resolve();
	return made(real.aligned_alloc(alignment, size), size);
}

void *memalign(size_t alignment, size_t size)
{
	resolve();
	return made(real.memalign(alignment, size), size);
}

void *valloc(size_t size)
{
	resolve();
	return made(real.valloc(size), size);
}
