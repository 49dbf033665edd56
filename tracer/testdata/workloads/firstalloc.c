/*
 * Allocates before main: in a constructor, which is the first code of a program that can.
 * Ends at once, with what it made in the constructor still live.
 */
#include <stdlib.h>

static void *volatile first;

__attribute__((noinline)) static void make_first_block(void)
{
	first = malloc(12345);
}

__attribute__((constructor)) static void begin(void)
{
	make_first_block();
	__asm__ volatile(""); /* no tail call: the constructor stays on the stack */
}

int main(void)
{
	return first ? 0 : 1;
}
