// What every call passes first, and Init and Shutdown.
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int users;   // Init without Shutdown
static atomic_int serving; // which coming of the driver they have to do with

static const struct rule *find(const struct rule *rules, int n, const char *function, int gpu) {
	for (int i = 0; i < n; i++)
		if ((rules[i].gpu == ANY_GPU || rules[i].gpu == gpu) && !strcmp(rules[i].function, function)) return &rules[i];
	return NULL;
}

// held waits as long as a function hangs, and returns how it fails.
static nvmlReturn_t held(const char *name, int gpu, const struct config **c) {
	while (find((*c)->hangs.at, (*c)->hangs.n, name, gpu)) {
		usleep(2000);
		*c = config_now();
	}
	const struct rule *failing = find((*c)->fails.at, (*c)->fails.n, name, gpu);
	return failing ? (nvmlReturn_t)failing->code : NVML_SUCCESS;
}

static nvmlReturn_t usable(enum scope scope, const struct nvmlDevice_st *d, const struct config *c) {
	if (scope == BEFORE_INIT) return NVML_SUCCESS;
	if (atomic_load(&users) == 0) return NVML_ERROR_UNINITIALIZED;
	if (scope == RELEASING) return NVML_SUCCESS;
	if (c->unload || c->loads != atomic_load(&serving)) return NVML_ERROR_DRIVER_NOT_LOADED;
	if (scope == NO_DEVICE) return NVML_SUCCESS;
	if (!d || d->generation != generation()) return NVML_ERROR_INVALID_ARGUMENT;
	if (!present(c, d->gpu)) return NVML_ERROR_GPU_IS_LOST;
	if (!d->mig) return NVML_SUCCESS;
	return scope == WHOLE ? NVML_ERROR_NOT_SUPPORTED : instance_of(c, d) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

static void spin(long ns) {
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	do clock_gettime(CLOCK_MONOTONIC, &to);
	while ((to.tv_sec - from.tv_sec) * 1000000000ll + to.tv_nsec - from.tv_nsec < ns);
}

nvmlReturn_t again(struct call *call, enum scope scope, const struct nvmlDevice_st *d, const struct config **c) {
	*c = config_now();
	nvmlReturn_t r = held(call->name, d ? d->gpu : ANY_GPU, c);
	return r != NVML_SUCCESS ? r : usable(scope, d, *c);
}

nvmlReturn_t gate(struct call *call, enum scope scope, const struct nvmlDevice_st *d, const struct config **c) {
	count(call, d);
	*c = config_now();
	if ((*c)->delay_ns) spin((*c)->delay_ns);
	return again(call, scope, d, c);
}

nvmlReturn_t of_gpu(struct call *call, int gpu, const struct config **c) { return held(call->name, gpu, c); }

static nvmlReturn_t start(const struct config *c) {
	if (c->init_ms) usleep(c->init_ms * 1000);
	c = config_fresh();
	if (c->unload) return NVML_ERROR_DRIVER_NOT_LOADED;
	if (c->mismatch) return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
	pthread_mutex_lock(&lock);
	if (atomic_load(&users) == 0) {
		enumerate(c);
		atomic_store(&serving, c->loads);
	}
	atomic_fetch_add(&users, 1);
	tally(USERS, 1);
	pthread_mutex_unlock(&lock);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void) {
	ENTER_AS(BEFORE_INIT, NULL);
	return start(c);
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
	ENTER_AS(BEFORE_INIT, NULL);
	return start(c);
}

nvmlReturn_t nvmlShutdown(void) {
	ENTER_AS(RELEASING, NULL);
	atomic_fetch_sub(&users, 1);
	tally(USERS, -1);
	return NVML_SUCCESS;
}

nvmlReturn_t text(char *out, unsigned int length, const char *format, ...) {
	va_list args;
	va_start(args, format);
	int n = vsnprintf(out, length, format, args);
	va_end(args);
	return n < 0 ? NVML_ERROR_UNKNOWN : (unsigned int)n >= length ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}
