// Two programs have this function in common: dwz moves what describes it to a third file.
// ENTRY names the function that differs. See seeds.sh.
struct envelope {
	int size;
	int kind;
	long when;
	struct envelope *next;
	char text[40];
	double score;
};

static inline __attribute__((always_inline)) int shared_inline_step(struct envelope *first, int limit)
{
	int total_of_all_sizes = 0;

	for (struct envelope *envelope = first; envelope && limit > 0; envelope = envelope->next, limit--) {
		int weighted_by_kind = envelope->size * envelope->kind;
		long seconds_since_start = envelope->when / 1000;

		total_of_all_sizes += weighted_by_kind + seconds_since_start;
		envelope->score += total_of_all_sizes;
	}
	return total_of_all_sizes;
}

int before(int n)
{
	return n + 1; // so that ENTRY does not begin the unit: GCC's DWARF 4 loses such ranges
}

int ENTRY(struct envelope *first)
{
	return shared_inline_step(first, 7);
}
