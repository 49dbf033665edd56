// A library for plugins.c. PLUGIN_FUNCTION names the static function that it is known by.
#include <execinfo.h>
#include <stdio.h>

static volatile int depth;

static __attribute__((noinline)) void PLUGIN_FUNCTION(void)
{
	void *addresses[32];
	int n = backtrace(addresses, 32);
	for (int i = 0; i < n; i++)
		printf("frame %p\n", addresses[i]);
	depth++;
}

void plugin_entry(void)
{
	PLUGIN_FUNCTION();
	depth++;
}
