// An allocator nobody knows: it hands out memory from one array and takes none back. To
// preload, or to link in.
#include <stddef.h>
#include <string.h>

static char memory[64 << 20];
static size_t used;

void *malloc(size_t size)
{
	size_t at = __atomic_fetch_add(&used, (size + 31) & ~(size_t)15, __ATOMIC_RELAXED);

	if (at + size + 16 > sizeof(memory))
		return NULL;
	*(size_t *)(memory + at) = size;
	return memory + at + 16;
}

void free(void *block)
{
	(void)block;
}

void *calloc(size_t count, size_t size)
{
	return malloc(count * size);
}

void *realloc(void *block, size_t size)
{
	void *larger = malloc(size);
	size_t old;

	if (block && larger) {
		old = *(size_t *)((char *)block - 16);
		memcpy(larger, block, old < size ? old : size);
	}
	return larger;
}
