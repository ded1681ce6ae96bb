// Who uses the GPUs.
#include "config.h"

// belongs says whether a process is one of a handle's: all of a GPU's, or those in a MIG device.
static int belongs(const struct process *p, const struct nvmlDevice_st *d, char kind) {
	if (p->gpu != d->gpu || p->kind != kind) return 0;
	return !d->mig || (p->gi == (int)d->gi && p->ci == (int)d->ci);
}

static unsigned int matching(const struct config *c, const struct nvmlDevice_st *d, char kind) {
	unsigned int n = 0;
	for (int i = 0; i < c->processes.n; i++) n += belongs(&c->processes.at[i], d, kind);
	return n;
}

// RUNNING defines a list of processes whose entries begin as those of the first version do.
#define RUNNING(name, type, letter, ...) \
	nvmlReturn_t name(nvmlDevice_t d, unsigned int *count, type *out) { \
		ENTER_AS(EITHER, d.handle); \
		if (c->gpu[d.handle->gpu].value[R_process_list] == NONE) return NVML_ERROR_NOT_SUPPORTED; \
		unsigned int room = *count, n = 0; \
		*count = matching(c, d.handle, letter); \
		if (*count > room) return NVML_ERROR_INSUFFICIENT_SIZE; \
		for (int i = 0; i < c->processes.n; i++) { \
			const struct process *p = &c->processes.at[i]; \
			if (belongs(p, d.handle, letter)) out[n++] = (type){.pid = p->pid, .usedGpuMemory = p->bytes, __VA_ARGS__}; \
		} \
		return NVML_SUCCESS; \
	}

#define PLACE .gpuInstanceId = p->gi, .computeInstanceId = p->ci

RUNNING(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t, 'c')
RUNNING(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t, 'g')
#if DRIVER >= 455
RUNNING(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, 'c', PLACE)
RUNNING(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t, 'g', PLACE)
#endif
#if DRIVER >= 470
RUNNING(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t, 'm')
RUNNING(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, 'm', PLACE)
#endif
#if DRIVER >= 510
RUNNING(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t, 'c', PLACE)
RUNNING(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t, 'g', PLACE)
RUNNING(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t, 'm', PLACE)
#endif

// sampled is when the driver last looked at the processes, in µs of the day.
static unsigned long long sampled(void) { return micros(1) / 200000 * 200000; }

static int busy(const struct process *p, int gpu, unsigned long long seen) { return p->gpu == gpu && p->sm > 0 && sampled() > seen; }

static unsigned int active(const struct config *c, int gpu, unsigned long long seen) {
	unsigned int n = 0;
	for (int i = 0; i < c->processes.n; i++) n += busy(&c->processes.at[i], gpu, seen);
	return n;
}

// room_for tells what is needed, and whether it is given.
static nvmlReturn_t room_for(unsigned int n, unsigned int *count, const void *out) {
	unsigned int room = *count;
	if (!n) return NVML_ERROR_NOT_FOUND;
	*count = n;
	return !out || n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t d, nvmlProcessUtilizationSample_t *out, unsigned int *count, unsigned long long seen) {
	ENTER_DEVICE(d);
	NOT_UNDER_MIG();
	nvmlReturn_t r = room_for(active(c, gpu, seen), count, out);
	if (r != NVML_SUCCESS) return r;
	for (int i = 0, n = 0; i < c->processes.n && n < (int)*count; i++) {
		const struct process *p = &c->processes.at[i];
		if (busy(p, gpu, seen)) out[n++] = (nvmlProcessUtilizationSample_t){.pid = p->pid, .timeStamp = sampled(), .smUtil = p->sm, .memUtil = p->sm / 2};
	}
	return NVML_SUCCESS;
}

#if DRIVER >= 550
nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t d, nvmlProcessesUtilizationInfo_t *out) {
	ENTER_DEVICE(d);
	VERSIONED(out, nvmlProcessesUtilizationInfo_v1);
	NOT_UNDER_MIG();
	nvmlReturn_t r = room_for(active(c, gpu, out->lastSeenTimeStamp), &out->processSamplesCount, out->procUtilArray);
	if (r != NVML_SUCCESS) return r;
	for (int i = 0, n = 0; i < c->processes.n && n < (int)out->processSamplesCount; i++) {
		const struct process *p = &c->processes.at[i];
		if (busy(p, gpu, out->lastSeenTimeStamp))
			out->procUtilArray[n++] = (nvmlProcessUtilizationInfo_v1_t){.pid = p->pid, .timeStamp = sampled(), .smUtil = p->sm, .memUtil = p->sm / 2};
	}
	return NVML_SUCCESS;
}
#endif
