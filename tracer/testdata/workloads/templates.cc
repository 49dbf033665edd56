// Prints a stack through C++ templates, namespaces, a lambda and inlined members, and the
// address of a static object; then waits for its standard input to end.
#include <cstdio>
#include <execinfo.h>
#include <vector>

namespace scoring {

static volatile int depth;

struct Envelope {
	int size;
};

static Envelope static_envelopes[8];

template <typename T> __attribute__((noinline)) void take_stack(T)
{
	void *addresses[32];
	int n = backtrace(addresses, 32);
	for (int i = 0; i < n; i++)
		std::printf("frame %p\n", addresses[i]);
	depth = depth + 1;
}

template <typename T> class Parser {
public:
	__attribute__((noinline)) void parse(const std::vector<T> &values)
	{
		each(values);
		depth = depth + 1;
	}

private:
	inline __attribute__((always_inline)) void each(const std::vector<T> &values)
	{
		for (const T &value : values)
			take_stack(value);
	}
};

} // namespace scoring

__attribute__((noinline)) static void run_parser(int n)
{
	std::vector<long> values(n, 7);
	scoring::Parser<long>().parse(values);
	scoring::depth = scoring::depth + 1;
}

int main(int argc, char **)
{
	run_parser(argc);
	std::printf("object %p\n", (void *)&scoring::static_envelopes[2]);
	std::printf("ready\n");
	std::fflush(stdout);
	while (std::getchar() != EOF)
		;
}
