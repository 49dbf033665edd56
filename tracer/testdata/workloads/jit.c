// Behaves like a just-in-time compiler: makes code in anonymous memory and names it in
// /tmp/perf-PID.map, unless an argument says where else to write the map. Prints the code's
// addresses; then waits for its standard input to end.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char path[4096];
	size_t size = 4096;
	char *code = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		return 1;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	if (argc > 1)
		snprintf(path, sizeof(path), "%s", argv[1]);
	FILE *map = fopen(path, "w");
	if (!map)
		return 1;
	fprintf(map, "%lx 100 old_code\n%lx 40 LazyCompile:*scoreEnvelope /app/scorer.js:12\n",
		(unsigned long)code, (unsigned long)code);
	fprintf(map, "%lx 80 Builtin:ArrayPush\n", (unsigned long)code + 0x200);
	fclose(map);
	printf("map %s\ncode %p\ncode %p\ncode %p\nready\n", path, (void *)(code + 8), (void *)(code + 0x210),
	       (void *)(code + 0x900));
	fflush(stdout);
	while (getchar() != EOF)
		;
	unlink(path);
	return 0;
}
