// Profiling metrics: averages of the loads the file gives, over the time between two samples.
#include "config.h"

#include <stdlib.h>
#include <string.h>

struct nvmlGpmSample_st {
	const struct config *taken; // what held then; NULL while the sample is empty
	int gpu, gi, gpm;
	double at;
};

// share is what a metric is of the GPU's load where the file says nothing, in its unit per percent.
static double share(int metric) {
	static const double shares[] = {
		[1] = 1, [2] = 0.9, [3] = 0.5, [4] = 0.1, [5] = 0.4, [7] = 0.4, [10] = 0.5, [12] = 0.2, [13] = 0.1, [20] = 10, [21] = 20,
	};
	if (metric < (int)(sizeof shares / sizeof *shares)) return shares[metric];
	if (metric == 60 || metric == 61) return 1800;
	return metric >= 62 && metric < 98 ? 100 : 0;
}

static const struct load *told(const struct config *c, int gpu, int gi, int metric) {
	for (int i = 0; i < c->gpm.n; i++) {
		const struct load *l = &c->gpm.at[i];
		if (l->gpu == gpu && l->gi == gi && l->metric == metric) return l;
	}
	return NULL;
}

double gpm_integral(const struct config *c, int gpu, int gi, int metric, double t) {
	const struct load *l = told(c, gpu, gi, metric);
	if (!l) return share(metric) * load_integral(c, gpu, t);
	if (!l->derived) return l->before + l->value * (t - c->since);
	return l->before + share(metric) * (load_integral(c, gpu, t) - load_integral(c, gpu, c->since));
}

#if DRIVER >= 520
// ids is how many metrics the driver knows: what its header has as NVML_GPM_METRIC_MAX.
static int ids(const struct config *c) { return c->major >= 595 ? 333 : c->major >= 575 ? 210 : 98; }

// known says whether the driver has a metric.
static int known(const struct config *c, int metric) {
	if (metric < 1 || metric >= ids(c)) return 0;
	if (metric == 8) return c->major >= 595;
	if (metric == 51) return c->major >= 560;
	if ((metric >= 212 && metric < 248) || metric >= 297) return c->major >= 610;
	return metric <= 13 || metric == 20 || metric == 21 || (metric >= 30 && metric < 38) || (metric >= 40 && metric < 48) ||
	       metric == 50 || (metric >= 60 && metric < 98) || (metric >= 100 && metric < 210) || metric >= 212;
}

// counted is the metric whose integral a counter of cycles or bytes is, 0 where there is none.
static int counted(int metric) {
	static const int of[] = {[249 - 248] = 2, 5, 8, 7, 9, 6, 20, 21, 4, 11, 12, 13};
	return metric >= 249 && metric <= 260 ? of[metric - 248] : 0;
}

static nvmlReturn_t counter(const struct nvmlGpmSample_st *s, int metric, double *value) {
	const double cycles = 1e6 * s->taken->gpu[s->gpu].value[R_clock_sm];
	if (metric == 248) *value = cycles * s->at;
	else if (metric == 255 || metric == 256) *value = 1048576 * gpm_integral(s->taken, s->gpu, s->gi, counted(metric), s->at);
	else if (counted(metric)) *value = cycles * gpm_integral(s->taken, s->gpu, s->gi, counted(metric), s->at) / 100;
	else {
		int link = (metric - 261) / 2, receive = metric % 2;
		if (s->gi != WHOLE_GPU || link >= s->taken->gpu[s->gpu].value[R_nvlinks]) return NVML_ERROR_NOT_SUPPORTED;
		*value = 1024 * nvlink_kib(s->taken, s->gpu, link, receive, s->at);
	}
	return NVML_SUCCESS;
}

static nvmlReturn_t measure(const struct nvmlGpmSample_st *from, const struct nvmlGpmSample_st *to, int metric, double *value) {
	const struct config *c = to->taken;
	if (!known(c, metric)) return NVML_ERROR_INVALID_ARGUMENT;
	int link = metric >= 62 && metric < 98 ? (metric - 62) / 2 : -1;
	if (!told(c, to->gpu, to->gi, metric)) {
		if (metric >= 100 && metric < 248) return NVML_ERROR_NOT_SUPPORTED;
		if (link >= c->gpu[to->gpu].value[R_nvlinks]) return NVML_ERROR_NOT_SUPPORTED;
		if (to->gi != WHOLE_GPU && metric >= 20 && metric < 248 && share(metric)) return NVML_ERROR_NOT_SUPPORTED;
		if (metric >= 248) return counter(to, metric, value);
	}
	double sum = gpm_integral(c, to->gpu, to->gi, metric, to->at) - gpm_integral(from->taken, from->gpu, from->gi, metric, from->at);
	*value = sum / (to->at - from->at);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t d, nvmlGpmSupport_t *out) {
	ENTER_EITHER(d);
	VERSIONED(out, NVML_GPM_SUPPORT_VERSION);
	out->isSupportedDevice = has(c, gpu, R_gpm);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample) {
	ENTER();
	sample->handle = calloc(1, sizeof *sample->handle);
	if (!sample->handle) return NVML_ERROR_MEMORY;
	tally(SAMPLES, 1);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
	ENTER_AS(RELEASING, NULL);
	if (!sample.handle) return NVML_ERROR_INVALID_ARGUMENT;
	free(sample.handle);
	tally(SAMPLES, -1);
	return NVML_SUCCESS;
}

static nvmlReturn_t take(const struct config *c, struct nvmlGpmSample_st *s, int gpu, int gi) {
	if (!s) return NVML_ERROR_INVALID_ARGUMENT;
	if (!has(c, gpu, R_gpm)) return NVML_ERROR_NOT_SUPPORTED;
	if (gi != WHOLE_GPU && !gi_there(c, gpu, gi)) return NVML_ERROR_NOT_FOUND;
	*s = (struct nvmlGpmSample_st){.taken = config_fresh(), .gpu = gpu, .gi = gi};
	s->at = now();
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t d, nvmlGpmSample_t sample) {
	ENTER_EITHER(d);
	return take(c, sample.handle, gpu, d.handle->mig ? (int)d.handle->gi : WHOLE_GPU);
}

#if DRIVER >= 525
nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t d, unsigned int gi, nvmlGpmSample_t sample) {
	ENTER_DEVICE(d);
	return take(c, sample.handle, gpu, gi);
}
#endif

// A driver with fewer metrics than the caller's header takes no more of them than it has.
nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *m) {
	ENTER();
	VERSIONED(m, NVML_GPM_METRICS_GET_VERSION);
	const struct nvmlGpmSample_st *from = m->sample1.handle, *to = m->sample2.handle;
	if (!from || !to || !from->taken || !to->taken || m->numMetrics > (unsigned int)ids(c)) return NVML_ERROR_INVALID_ARGUMENT;
	if (from->gpu != to->gpu || from->gi != to->gi) return NVML_ERROR_INVALID_ARGUMENT;
	if (to->at - from->at < 0.1) return NVML_ERROR_NO_DATA;
	for (unsigned int i = 0; i < m->numMetrics; i++) {
		m->metrics[i].value = 0;
		m->metrics[i].nvmlReturn = measure(from, to, m->metrics[i].metricId, &m->metrics[i].value);
	}
	return NVML_SUCCESS;
}
#endif
