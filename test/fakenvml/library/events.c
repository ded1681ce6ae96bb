// What the fake driver tells of as it happens.
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct nvmlEventSet_st {
	nvmlDevice_t devices[MAX_GPUS]; // those registered
	unsigned long long types[MAX_GPUS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int told; // how many of the file's lines

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
	ENTER();
	set->handle = calloc(1, sizeof *set->handle);
	if (!set->handle) return NVML_ERROR_MEMORY;
	tally(SETS, 1);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
	ENTER_AS(RELEASING, NULL);
	if (!set.handle) return NVML_ERROR_INVALID_ARGUMENT;
	free(set.handle);
	tally(SETS, -1);
	return NVML_SUCCESS;
}

ANSWER(nvmlDeviceGetSupportedEventTypes, unsigned long long, R_events)

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long types, nvmlEventSet_t set) {
	ENTER_DEVICE(d);
	unsigned long long supported;
	TAKE(supported, R_events);
	if (types & ~supported) return NVML_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&lock);
	set.handle->devices[gpu] = d;
	set.handle->types[gpu] |= types;
	pthread_mutex_unlock(&lock);
	return NVML_SUCCESS;
}

// swallowed says whether a later XID of the same GPU takes an event's place.
static int swallowed(const struct config *c, int i) {
	const struct event *e = &c->events.at[i];
	if (!c->last_xid || e->type != nvmlEventTypeXidCriticalError) return 0;
	for (int k = i + 1; k < c->events.n; k++)
		if (c->events.at[k].gpu == e->gpu && c->events.at[k].type == e->type) return 1;
	return 0;
}

// next takes one event. While a registered device is lost, only those of lost devices come.
static nvmlReturn_t next(const struct config *c, nvmlEventSet_t set, nvmlEventData_t *data) {
	nvmlReturn_t nothing = NVML_ERROR_TIMEOUT;
	for (int i = 0; i < MAX_GPUS; i++)
		if (set.handle->devices[i].handle && !present(c, i)) nothing = NVML_ERROR_GPU_IS_LOST;
	while (told < c->events.n && swallowed(c, told)) told++;
	if (told >= c->events.n) return nothing;
	const struct event *e = &c->events.at[told];
	const int listens = set.handle->devices[e->gpu].handle && set.handle->types[e->gpu] & e->type;
	if (!listens || (nothing == NVML_ERROR_GPU_IS_LOST && present(c, e->gpu))) return nothing;
	told++;
	*data = (nvmlEventData_t){.device = set.handle->devices[e->gpu], .eventType = e->type, .eventData = e->data,
	                          .gpuInstanceId = e->gi, .computeInstanceId = e->ci};
	return NVML_SUCCESS;
}

static nvmlReturn_t wait_for(struct call *call, const struct config *c, nvmlEventSet_t set, nvmlEventData_t *data, unsigned int ms) {
	nvmlReturn_t refused = NVML_SUCCESS;
	const unsigned long long end = micros(0) + ms * 1000ull;
	for (; refused == NVML_SUCCESS; refused = again(call, NO_DEVICE, NULL, &c)) {
		pthread_mutex_lock(&lock);
		nvmlReturn_t r = next(c, set, data);
		pthread_mutex_unlock(&lock);
		if (r != NVML_ERROR_TIMEOUT || micros(0) >= end) return r;
		usleep(2000);
	}
	return refused;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int ms) {
	ENTER();
	return wait_for(&call, c, set, data, ms);
}
