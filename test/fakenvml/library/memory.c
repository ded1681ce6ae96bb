// Memory of a GPU, and of a MIG device.
#include "config.h"

struct memory {
	unsigned long long total, reserved, used;
};

static nvmlReturn_t memory_of(const struct config *c, const struct nvmlDevice_st *d, struct memory *m) {
	const int gpu = d->gpu;
	const struct instance *in = d->mig ? instance_of(c, d) : NULL;
	if (in) {
		*m = (struct memory){.total = mig_memory(in), .used = mig_used(c, gpu, in->gi)};
		return NVML_SUCCESS;
	}
	TAKE(m->total, R_mem_total);
	TAKE(m->reserved, R_mem_reserved);
	TAKE(m->used, R_mem_used);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *out) {
	ENTER_AS(EITHER, d.handle);
	struct memory m = {0};
	nvmlReturn_t r = memory_of(c, d.handle, &m);
	if (r == NVML_SUCCESS) *out = (nvmlMemory_t){.total = m.total, .free = m.total - m.used - m.reserved, .used = m.used + m.reserved};
	return r;
}

#if DRIVER >= 510
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, nvmlMemory_v2_t *out) {
	ENTER_AS(EITHER, d.handle);
	VERSIONED(out, nvmlMemory_v2);
	struct memory m = {0};
	nvmlReturn_t r = memory_of(c, d.handle, &m);
	if (r != NVML_SUCCESS) return r;
	out->total = m.total;
	out->reserved = m.reserved;
	out->used = m.used;
	out->free = m.total - m.used - m.reserved;
	return NVML_SUCCESS;
}
#endif

// A MIG device has the part of BAR1 that it has of the memory.
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t d, nvmlBAR1Memory_t *out) {
	ENTER_EITHER(d);
	unsigned long long total, used;
	TAKE(total, R_bar1_total);
	TAKE(used, R_bar1_used);
	const struct instance *in = d.handle->mig ? instance_of(c, d.handle) : NULL;
	if (in) {
		total = mig_memory(in);
		used = 1 << 20;
	}
	*out = (nvmlBAR1Memory_t){.bar1Total = total, .bar1Used = used, .bar1Free = total - used};
	return NVML_SUCCESS;
}

#if DRIVER >= 535
nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t d, nvmlMemory_t *out) {
	ENTER_DEVICE(d);
	TAKE(out->total, R_protected_total);
	TAKE(out->used, R_protected_used);
	out->free = out->total - out->used;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t d, nvmlConfComputeMemSizeInfo_t *out) {
	ENTER_DEVICE(d);
	TAKE(out->protectedMemSizeKib, R_cc_protected_kib);
	TAKE(out->unprotectedMemSizeKib, R_cc_unprotected_kib);
	return NVML_SUCCESS;
}
#endif
