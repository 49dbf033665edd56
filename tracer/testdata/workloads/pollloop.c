/*
 * A service in miniature, with the habits that send people looking for a tracer:
 *
 * scorer     polls every 50 ms, parses every envelope in its spool, finds that none is for
 *            it, and throws all of it away: it allocates and burns CPU to do nothing
 * store      a storage engine that reads pages through a cache and builds a statement for
 *            each query
 * worker-N   take jobs off a queue and free what the ingest thread allocated
 * ingest     makes those jobs
 * burst-N    short-lived threads that leave a little memory behind in an arena each
 *
 * It runs for as many seconds as the first argument says, or until SIGTERM.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define step static __attribute__((noinline))

enum { SPOOL = 48, FIELDS = 12, PAGE = 4096, CACHE = 256, WORKERS = 4, QUEUE = 64, BURSTS = 4 };

static volatile sig_atomic_t stopping;

static void stop(int signal)
{
	(void)signal;
	stopping = 1;
}

static void name_thread(const char *name)
{
	prctl(PR_SET_NAME, name);
}

static void pause_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

/* ---- scorer ---- */

struct field {
	char *name;
	char *value;
};

struct envelope {
	char *sender;
	char *body;
	struct field *fields;
	int count;
	int addressee;
};

static char *spool[SPOOL]; /* what lies in the mailbox, the same all day */

step char *copy_text(const char *from, size_t length)
{
	char *text = malloc(length + 1);

	memcpy(text, from, length);
	text[length] = 0;
	return text;
}

step void parse_field(struct envelope *e, const char *line, size_t length)
{
	const char *colon = memchr(line, ':', length);
	struct field *field;

	if (!colon)
		return;
	e->fields = realloc(e->fields, (e->count + 1) * sizeof(*e->fields));
	field = &e->fields[e->count++];
	field->name = copy_text(line, colon - line);
	field->value = copy_text(colon + 1, line + length - colon - 1);
}

step struct envelope *parse_envelope(const char *text)
{
	struct envelope *e = calloc(1, sizeof(*e));
	const char *line = text, *end;

	while ((end = strchr(line, '\n')) && end != line) {
		parse_field(e, line, end - line);
		line = end + 1;
	}
	e->body = copy_text(line, strlen(line));
	e->sender = strdup(e->count ? e->fields[0].value : "");
	e->addressee = atoi(e->count > 1 ? e->fields[1].value : "0");
	return e;
}

/* Stands for the cryptography that such a service does for every envelope it reads. */
step uint64_t verify_signature(const struct envelope *e)
{
	uint64_t hash = 14695981039346656037u;

	for (int pass = 0; pass < 200; pass++)
		for (const char *byte = e->body; *byte; byte++)
			hash = (hash ^ (unsigned char)*byte) * 1099511628211u;
	return hash;
}

step void drop_envelope(struct envelope *e)
{
	for (int i = 0; i < e->count; i++) {
		free(e->fields[i].name);
		free(e->fields[i].value);
	}
	free(e->fields);
	free(e->sender);
	free(e->body);
	free(e);
}

/* One turn of the loop: everything is parsed before anyone asks whether it is needed. */
step int score_pending(void)
{
	struct envelope **pending = malloc(SPOOL * sizeof(*pending));
	int scored = 0;

	for (int i = 0; i < SPOOL; i++)
		pending[i] = parse_envelope(spool[i]);
	for (int i = 0; i < SPOOL; i++) {
		if (verify_signature(pending[i]) && pending[i]->addressee == getpid())
			scored++;
		drop_envelope(pending[i]);
	}
	free(pending);
	return scored;
}

static void fill_spool(void)
{
	for (int i = 0; i < SPOOL; i++) {
		size_t size = 0;
		FILE *out = open_memstream(&spool[i], &size);

		fprintf(out, "From:node-%d\nTo:0\n", i);
		for (int field = 2; field < FIELDS; field++)
			fprintf(out, "X-Header-%d:%0*d\n", field, 20 + i % 40, i * field);
		fprintf(out, "\n%*s\n", 900 + i * 7, "payload");
		fclose(out);
	}
}

static void *scorer(void *argument)
{
	struct pollfd wakeup = { .fd = *(int *)argument, .events = POLLIN };

	name_thread("scorer");
	while (!stopping) {
		poll(&wakeup, 1, 50);
		score_pending();
	}
	return NULL;
}

/* ---- store ---- */

struct page {
	unsigned number;
	unsigned char *data;
};

static struct page cache[CACHE];

step unsigned char *fetch_page(unsigned number)
{
	struct page *slot = &cache[number % CACHE];

	if (!slot->data || slot->number != number) {
		free(slot->data);
		slot->data = malloc(PAGE);
		slot->number = number;
		memset(slot->data, number, PAGE);
	}
	return slot->data;
}

step unsigned search_page(const unsigned char *page)
{
	unsigned sum = 0;

	for (int pass = 0; pass < 4; pass++)
		for (int i = 0; i < PAGE; i++)
			sum = sum * 31 + page[i];
	return sum;
}

step char *prepare_statement(unsigned key)
{
	char *statement = malloc(512);

	snprintf(statement, 512, "SELECT body FROM envelopes WHERE id = %u", key);
	return statement;
}

step unsigned run_query(unsigned key)
{
	char *statement = prepare_statement(key);
	unsigned sum = statement[0];

	for (unsigned level = 0; level < 3; level++)
		sum += search_page(fetch_page((key >> (8 + level * 7)) % (2 * CACHE)));
	free(statement);
	return sum;
}

static void *store(void *argument)
{
	unsigned key = 1;

	name_thread("store");
	while (!stopping) {
		for (int i = 0; i < 30; i++)
			key = key * 1103515245u + run_query(key);
		pause_ms(10);
	}
	return argument;
}

/* ---- ingest and workers ---- */

struct job {
	size_t size;
	char *payload;
};

static struct job *queue[QUEUE];
static unsigned queue_head, queue_tail;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;

step struct job *make_job(unsigned number)
{
	struct job *job = malloc(sizeof(*job));

	job->size = 256 + number % 16 * 512;
	job->payload = malloc(job->size);
	memset(job->payload, number, job->size);
	return job;
}

step void finish_job(struct job *job)
{
	char *report = malloc(64);

	snprintf(report, 64, "job of %zu bytes", job->size);
	free(report);
	free(job->payload);
	free(job);
}

static void *ingest(void *argument)
{
	name_thread("ingest");
	for (unsigned number = 0; !stopping; number++) {
		struct job *job = make_job(number);

		pthread_mutex_lock(&queue_lock);
		if (queue_tail - queue_head < QUEUE) {
			queue[queue_tail++ % QUEUE] = job;
			job = NULL;
			pthread_cond_signal(&queue_filled);
		}
		pthread_mutex_unlock(&queue_lock);
		if (job)
			finish_job(job);
		pause_ms(2);
	}
	pthread_mutex_lock(&queue_lock);
	pthread_cond_broadcast(&queue_filled);
	pthread_mutex_unlock(&queue_lock);
	return argument;
}

static void *worker(void *argument)
{
	char name[16];

	snprintf(name, sizeof(name), "worker-%ld", (long)argument);
	name_thread(name);
	for (;;) {
		struct job *job = NULL;

		pthread_mutex_lock(&queue_lock);
		while (queue_head == queue_tail && !stopping)
			pthread_cond_wait(&queue_filled, &queue_lock);
		if (queue_head != queue_tail)
			job = queue[queue_head++ % QUEUE];
		pthread_mutex_unlock(&queue_lock);
		if (!job)
			return NULL;
		finish_job(job);
	}
}

/* ---- bursts ---- */

static void *kept[1 << 16];
static unsigned kept_count;

step void remember_session(void)
{
	unsigned slot = __atomic_fetch_add(&kept_count, 1, __ATOMIC_RELAXED);

	if (slot < sizeof(kept) / sizeof(*kept))
		kept[slot] = strdup("a session that nobody asks for any more");
}

step void handle_burst(void)
{
	void *blocks[40];

	for (int i = 0; i < 40; i++)
		blocks[i] = malloc(2000 + i);
	remember_session();
	for (int i = 0; i < 40; i++)
		free(blocks[i]);
}

static void *burst(void *argument)
{
	char name[16];

	snprintf(name, sizeof(name), "burst-%ld", (long)argument);
	name_thread(name);
	for (int i = 0; i < 10; i++) {
		handle_burst();
		pause_ms(5);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[WORKERS + 3], bursts[BURSTS];
	int wakeup[2], count = 0;
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1 << 30);

	signal(SIGTERM, stop);
	signal(SIGINT, stop);
	if (pipe(wakeup))
		return 1;
	fill_spool();
	pthread_create(&threads[count++], NULL, scorer, &wakeup[0]);
	pthread_create(&threads[count++], NULL, store, NULL);
	pthread_create(&threads[count++], NULL, ingest, NULL);
	for (long i = 0; i < WORKERS; i++)
		pthread_create(&threads[count++], NULL, worker, (void *)i);
	while (!stopping && time(NULL) < end) {
		for (long i = 0; i < BURSTS; i++)
			pthread_create(&bursts[i], NULL, burst, (void *)i);
		for (int i = 0; i < BURSTS; i++)
			pthread_join(bursts[i], NULL);
		pause_ms(500);
	}
	stopping = 1;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
