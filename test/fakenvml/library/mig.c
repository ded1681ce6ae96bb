// GPUs in parts.
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nvmlGpuInstance_st {
	struct nvmlDevice_st of;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct nvmlDevice_st *known;

// instance_of is what a MIG device's handle stands for, NULL when it has been destroyed.
const struct instance *instance_of(const struct config *c, const struct nvmlDevice_st *d) {
	const struct gpu *g = &c->gpu[d->gpu];
	for (int i = 0; g->mig && i < g->instances; i++) {
		const struct instance *in = &g->instance[i];
		if (in->gi == d->gi && in->ci == d->ci && !strcmp(in->profile, d->profile)) return in;
	}
	return NULL;
}

int gi_there(const struct config *c, int gpu, int gi) {
	const struct gpu *g = &c->gpu[gpu];
	for (int i = 0; g->mig && i < g->instances; i++)
		if (g->instance[i].there && (int)g->instance[i].gi == gi) return 1;
	return 0;
}

// The same place on the same GPU has the same UUID again.
void mig_uuid(char *out, size_t size, int gpu, const struct instance *in) {
	snprintf(out, size, "MIG-00000000-0000-5000-8000-%04x%04x%04x", gpu, in->gi, in->ci);
}

// part reads a profile such as 3g.40gb, or 1c.3g.40gb for a part of its multiprocessors.
static void part(const struct instance *in, int *compute, int *slices, int *gigabytes) {
	if (sscanf(in->profile, "%dc.%dg.%dgb", compute, slices, gigabytes) == 3) return;
	if (sscanf(in->profile, "%dg.%dgb", slices, gigabytes) != 2) *slices = *gigabytes = 1;
	*compute = *slices;
}

unsigned long long mig_memory(const struct instance *in) {
	int compute, slices, gigabytes;
	part(in, &compute, &slices, &gigabytes);
	return (unsigned long long)gigabytes << 30;
}

unsigned long long mig_used(const struct config *c, int gpu, unsigned int gi) {
	unsigned long long sum = 0;
	for (int i = 0; i < c->processes.n; i++) {
		const struct process *p = &c->processes.at[i];
		if (p->gpu == gpu && p->gi == (int)gi && p->bytes != ~0ull) sum += p->bytes;
	}
	for (int i = 0; i < c->used.n; i++)
		if (c->used.at[i].gpu == gpu && c->used.at[i].gi == (int)gi) sum = c->used.at[i].bytes;
	return sum;
}

nvmlReturn_t mig_handle(const struct config *c, int gpu, unsigned int index, nvmlDevice_t *d) {
	const struct instance *in = &c->gpu[gpu].instance[index];
	pthread_mutex_lock(&lock);
	struct nvmlDevice_st *h = known;
	while (h && (h->generation != generation() || h->gpu != gpu || h->gi != in->gi || h->ci != in->ci || strcmp(h->profile, in->profile)))
		h = h->next;
	if (!h) {
		h = calloc(1, sizeof *h);
		if (!h) abort();
		*h = (struct nvmlDevice_st){.gpu = gpu, .mig = 1, .generation = generation(), .gi = in->gi, .ci = in->ci, .next = known};
		memcpy(h->profile, in->profile, sizeof h->profile);
		known = h;
	}
	pthread_mutex_unlock(&lock);
	d->handle = h;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned int *current, unsigned int *pending) {
	ENTER_DEVICE(d);
	if (!has(c, gpu, R_mig)) return NVML_ERROR_NOT_SUPPORTED;
	*current = c->gpu[gpu].mig;
	TAKE(*pending, R_mig_pending);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t d, unsigned int *count) {
	ENTER_DEVICE(d);
	*count = !c->gpu[gpu].mig ? 0 : c->gpu[gpu].instances > 7 ? c->gpu[gpu].instances : 7;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t d, unsigned int index, nvmlDevice_t *out) {
	ENTER_DEVICE(d);
	const struct gpu *g = &c->gpu[gpu];
	if (!has(c, gpu, R_mig)) return NVML_ERROR_NOT_SUPPORTED;
	if (!g->mig || index >= (unsigned int)g->instances || !g->instance[index].there) return NVML_ERROR_NOT_FOUND;
	return mig_handle(c, gpu, index, out);
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t d, unsigned int *is) {
	ENTER_AS(EITHER, d.handle);
	*is = d.handle->mig;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t d, nvmlDevice_t *parent) {
	ENTER_EITHER(d);
	if (!d.handle->mig) return NVML_ERROR_INVALID_ARGUMENT;
	parent->handle = handle_of(gpu);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t d, unsigned int *id) {
	ENTER_AS(EITHER, d.handle);
	if (!d.handle->mig) return NVML_ERROR_NOT_SUPPORTED;
	*id = d.handle->gi;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t d, unsigned int *id) {
	ENTER_AS(EITHER, d.handle);
	if (!d.handle->mig) return NVML_ERROR_NOT_SUPPORTED;
	*id = d.handle->ci;
	return NVML_SUCCESS;
}

static nvmlReturn_t attributes(const struct config *c, const struct nvmlDevice_st *d, nvmlDeviceAttributes_t *out) {
	int compute, slices, gigabytes;
	if (!d->mig) return NVML_ERROR_NOT_SUPPORTED;
	part(instance_of(c, d), &compute, &slices, &gigabytes);
	*out = (nvmlDeviceAttributes_t){
		.multiprocessorCount = 16 * compute, .sharedCopyEngineCount = slices, .sharedDecoderCount = slices,
		.sharedJpegCount = slices, .sharedOfaCount = slices == 7, .gpuInstanceSliceCount = slices,
		.computeInstanceSliceCount = compute, .memorySizeMB = 1024ull * gigabytes,
	};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t d, nvmlDeviceAttributes_t *out) {
	ENTER_AS(EITHER, d.handle);
	return attributes(c, d.handle, out);
}

#if DRIVER >= 455
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t d, nvmlDeviceAttributes_t *out) {
	ENTER_AS(EITHER, d.handle);
	return attributes(c, d.handle, out);
}
#endif

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t d, unsigned int id, nvmlGpuInstance_t *out) {
	ENTER_DEVICE(d);
	if (!c->gpu[gpu].mig) return NVML_ERROR_NOT_SUPPORTED;
	if (!gi_there(c, gpu, id)) return NVML_ERROR_NOT_FOUND;
	struct nvmlGpuInstance_st *in = calloc(1, sizeof *in);
	if (!in) return NVML_ERROR_MEMORY;
	in->of = (struct nvmlDevice_st){.gpu = gpu, .generation = generation(), .gi = id};
	out->handle = in;
	return NVML_SUCCESS;
}

// A GPU instance lies where its number says.
nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *out) {
	ENTER_AS(WHOLE, &instance.handle->of);
	const struct nvmlDevice_st *of = &instance.handle->of;
	if (!gi_there(c, of->gpu, of->gi)) return NVML_ERROR_NOT_FOUND;
	*out = (nvmlGpuInstanceInfo_t){.device = {handle_of(of->gpu)}, .id = of->gi, .placement = {.start = of->gi % 8, .size = 1}};
	return NVML_SUCCESS;
}
