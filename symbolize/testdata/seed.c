// The program of the fuzzers' seeds: a static function, an inlined one, data. See seeds.sh.
static int counters[4];
int exported_lock;

static inline __attribute__((always_inline)) int step(int n)
{
	return counters[n & 3]++ * n;
}

static __attribute__((noinline)) int middle(int n)
{
	exported_lock++;
	return step(n) + step(n + 1);
}

int entry(int n)
{
	if (n > 3)
		return middle(n) + 1;
	return step(n);
}
