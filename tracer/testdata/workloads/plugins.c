// Loads and unloads the libraries that its standard input names, one command a line:
// "load PATH" prints the stack of the library's plugin_entry, "unload" closes it. A library
// whose addresses are free again is followed by the next one at the same place.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
	char line[4096];
	void *library = NULL;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready\n");
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (strcmp(line, "unload") == 0) {
			dlclose(library);
		} else {
			library = dlopen(line + strlen("load "), RTLD_NOW);
			if (!library) {
				fprintf(stderr, "%s\n", dlerror());
				return 1;
			}
			void (*entry)(void) = (void (*)(void))dlsym(library, "plugin_entry");
			entry();
		}
		printf("ready\n");
	}
	return 0;
}
