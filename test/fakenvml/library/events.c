// The XIDs the fake driver tells of.
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct nvmlEventSet_st {
	nvmlDevice_t devices[MAX_GPUS]; // those registered
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int told; // how many of the file's xid lines

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
	ENTER(ANY_GPU);
	set->handle = calloc(1, sizeof *set->handle);
	return set->handle ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
	ENTER(ANY_GPU);
	free(set.handle);
	return NVML_SUCCESS;
}

ANSWER(nvmlDeviceGetSupportedEventTypes, unsigned long long, nvmlEventTypeXidCriticalError)

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long types, nvmlEventSet_t set) {
	ENTER_DEVICE(d);
	if (types & ~(unsigned long long)nvmlEventTypeXidCriticalError) return NVML_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&lock);
	set.handle->devices[gpu] = d;
	pthread_mutex_unlock(&lock);
	return NVML_SUCCESS;
}

// next takes one event. While a registered device is lost, only those of lost devices come.
static nvmlReturn_t next(const struct config *c, nvmlEventSet_t set, nvmlEventData_t *data) {
	nvmlReturn_t nothing = NVML_ERROR_TIMEOUT;
	for (int i = 0; i < MAX_GPUS; i++)
		if (set.handle->devices[i].handle && c->lost[i]) nothing = NVML_ERROR_GPU_IS_LOST;
	if (told == c->xids) return nothing;
	const struct rule *x = &c->xid[told];
	if (!set.handle->devices[x->gpu].handle || (nothing == NVML_ERROR_GPU_IS_LOST && !c->lost[x->gpu])) return nothing;
	told++;
	*data = (nvmlEventData_t){.device = set.handle->devices[x->gpu], .eventType = nvmlEventTypeXidCriticalError,
	                          .eventData = x->code, .gpuInstanceId = ~0u, .computeInstanceId = ~0u};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int ms) {
	const unsigned long long end = micros(0) + ms * 1000ull;
	for (;;) {
		ENTER(ANY_GPU);
		pthread_mutex_lock(&lock);
		nvmlReturn_t r = next(&c, set, data);
		pthread_mutex_unlock(&lock);
		if (r != NVML_ERROR_TIMEOUT || micros(0) >= end) return r;
		usleep(2000);
	}
}
