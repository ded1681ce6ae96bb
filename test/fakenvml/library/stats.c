// How often each call was made. The numbers stand in the file named by FAKENVML_STATS itself, shared,
// so that whoever reads it sees them as they are; the package's Go code knows how they lie.
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_CALLS = 256, COLUMNS = 2 * MAX_GPUS + 1 }; // of GPUs, of their MIG devices, of none

struct record {
	char name[MAX_NAME];
	atomic_ulong calls[COLUMNS];
};

struct table {
	atomic_long tallies[8];
	struct record record[MAX_CALLS];
};

static struct table *table;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void map(void) {
	const char *path = getenv("FAKENVML_STATS");
	int file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644) : -1;
	if (path && (file < 0 || ftruncate(file, sizeof *table))) {
		perror(path);
		abort();
	}
	table = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0);
	if (table == MAP_FAILED) abort();
	if (file >= 0) close(file);
}

// claim finds a function's row, or takes the first free one.
static struct record *claim(struct call *call) {
	pthread_once(&once, map);
	pthread_mutex_lock(&lock);
	struct record *r = table->record;
	while (r->name[0] && strcmp(r->name, call->name))
		if (++r == table->record + MAX_CALLS) abort();
	snprintf(r->name, sizeof r->name, "%s", call->name);
	atomic_store(&call->record, r);
	pthread_mutex_unlock(&lock);
	return r;
}

void count(struct call *call, const struct nvmlDevice_st *d) {
	struct record *r = atomic_load_explicit(&call->record, memory_order_acquire);
	if (!r) r = claim(call);
	int column = d ? d->gpu + (d->mig ? MAX_GPUS : 0) : COLUMNS - 1;
	atomic_fetch_add_explicit(&r->calls[column], 1, memory_order_relaxed);
}

long tally(enum tally what, int by) {
	pthread_once(&once, map);
	return atomic_fetch_add(&table->tallies[what], by) + by;
}
