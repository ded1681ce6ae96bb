// Which GPUs there are, and their handles.
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static atomic_int born;                          // how often the GPUs were enumerated
static _Atomic(struct nvmlDevice_st *) handles;  // of the last time
static atomic_ullong off, skipped;               // fallen off the bus; those of them that Init passed over
static atomic_int found;                         // how many there were

static int bit(unsigned long long set, int gpu) { return set >> gpu & 1; }

int generation(void) { return atomic_load(&born); }
struct nvmlDevice_st *handle_of(int gpu) { return &atomic_load(&handles)[gpu]; }

// see_fallen remembers who has fallen until the next Init, also when the line is gone.
void see_fallen(const struct config *c) {
	for (int i = 0; i < MAX_GPUS; i++)
		if (c->gpu[i].fallen) atomic_fetch_or(&off, 1ull << i);
}

void enumerate(const struct config *c) {
	struct nvmlDevice_st *next = calloc(MAX_GPUS, sizeof *next);
	if (!next) abort();
	atomic_store(&off, 0);
	see_fallen(c);
	atomic_store(&skipped, atomic_load(&off));
	atomic_store(&found, c->gpus);
	for (int i = 0; i < MAX_GPUS; i++) next[i] = (struct nvmlDevice_st){.gpu = i, .generation = generation() + 1};
	atomic_store(&handles, next);
	atomic_fetch_add(&born, 1);
}

// present says whether a GPU that has a handle can be reached.
int present(const struct config *c, int gpu) {
	return gpu < c->gpus && !c->gpu[gpu].lost && !bit(atomic_load(&off), gpu);
}

static int limit(const struct config *c) { return c->at_init ? atomic_load(&found) : c->gpus; }

int gpu_at(const struct config *c, unsigned int index) {
	for (int i = 0; i < limit(c); i++)
		if (!bit(atomic_load(&skipped), i) && index-- == 0) return i;
	return -1;
}

int index_of(int gpu) { return gpu - __builtin_popcountll(atomic_load(&skipped) & ((1ull << gpu) - 1)); }

unsigned int enumerated(const struct config *c) {
	unsigned int n = 0;
	while (gpu_at(c, n) >= 0) n++;
	return n;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
	ENTER();
	*count = enumerated(c);
	return NVML_SUCCESS;
}

// give hands a handle out. A lost GPU still has one.
static nvmlReturn_t give(struct call *call, const struct config *c, int gpu, nvmlDevice_t *device) {
	nvmlReturn_t r = of_gpu(call, gpu, &c);
	if (r == NVML_SUCCESS) device->handle = handle_of(gpu);
	return r;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
	ENTER();
	int gpu = gpu_at(c, index);
	return gpu < 0 ? NVML_ERROR_INVALID_ARGUMENT : give(&call, c, gpu, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
	ENTER();
	for (unsigned int i = 0; gpu_at(c, i) >= 0; i++) {
		int gpu = gpu_at(c, i);
		const struct gpu *g = &c->gpu[gpu];
		if (!strcmp(g->uuid, uuid)) return give(&call, c, gpu, device);
		for (int k = 0; g->mig && k < g->instances; k++) {
			char of[MAX_TEXT];
			mig_uuid(of, sizeof of, gpu, &g->instance[k]);
			if (g->instance[k].there && !strcmp(of, uuid)) return mig_handle(c, gpu, k, device);
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device) {
	ENTER();
	unsigned int domain, bus, dev, function;
	if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &dev, &function) != 4) return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned int i = 0; gpu_at(c, i) >= 0; i++) {
		int gpu = gpu_at(c, i);
		const struct gpu *g = &c->gpu[gpu];
		if (g->domain == domain && g->bus == bus && g->device == dev) return give(&call, c, gpu, device);
	}
	return NVML_ERROR_NOT_FOUND;
}
