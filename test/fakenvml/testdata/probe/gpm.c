// Profiling metrics.
#include "probe.h"

#include <time.h>

static nvmlGpmMetricsGet_t ask; // large

static double seconds(void) {
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static nvmlReturn_t metric(nvmlGpmSample_t from, nvmlGpmSample_t to, unsigned int id, double *value) {
	ask = (nvmlGpmMetricsGet_t){.version = NVML_GPM_METRICS_GET_VERSION, .numMetrics = 1, .sample1 = from, .sample2 = to};
	ask.metrics[0].metricId = id;
	nvmlReturn_t r = nvmlGpmMetricsGet(&ask);
	*value = ask.metrics[0].value;
	return r != NVML_SUCCESS ? r : ask.metrics[0].nvmlReturn;
}

// A metric is the average over the time between its samples of what the file said meanwhile.
void averages(void) {
	nvmlGpmSample_t s[4];
	nvmlGpmSupport_t support = {.version = NVML_GPM_SUPPORT_VERSION};
	nvmlDevice_t m;
	double v;
	tell("board h100\ngpm 0 5 80\ngpm 0/7 5 20\nload 0 50\nmig 0 on 1g.10gb:7:0\n");
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	nvmlDevice_t d = device(0);
	WANT(nvmlGpmQueryDeviceSupport(d, &support), NVML_SUCCESS);
	WANT(support.isSupportedDevice, 1);
	for (int i = 0; i < 4; i++) WANT(nvmlGpmSampleAlloc(&s[i]), NVML_SUCCESS);
	WANT(metric(s[0], s[1], 5, &v), NVML_ERROR_INVALID_ARGUMENT); // nothing is in them
	double from = seconds();
	WANT(nvmlGpmSampleGet(d, s[0]), NVML_SUCCESS);
	WANT(nvmlGpmMigSampleGet(d, 7, s[2]), NVML_SUCCESS);
	rest(20);
	WANT(nvmlGpmSampleGet(d, s[1]), NVML_SUCCESS);
	WANT(metric(s[0], s[1], 5, &v), NVML_ERROR_NO_DATA); // too early
	rest(200);
	double changed = seconds(); // nobody looks until the next sample, and it counts from now all the same
	tell("board h100\ngpm 0 5 0\ngpm 0/7 5 20\nload 0 50\nmig 0 on 1g.10gb:7:0\n");
	rest(300);
	WANT(nvmlGpmSampleGet(d, s[1]), NVML_SUCCESS);
	double to = seconds();
	WANT(metric(s[0], s[1], 5, &v), NVML_SUCCESS);
	NEAR(v, 80 * (changed - from) / (to - from), 3);
	WANT(metric(s[0], s[1], 2, &v), NVML_SUCCESS);
	NEAR(v, 45, 1e-6); // follows the load
	WANT(metric(s[0], s[1], 100, &v), NVML_ERROR_NOT_SUPPORTED);
	WANT(metric(s[0], s[1], 14, &v), NVML_ERROR_INVALID_ARGUMENT);
	WANT(nvmlDeviceGetMigDeviceHandleByIndex(d, 0, &m), NVML_SUCCESS);
	WANT(nvmlGpmSampleGet(m, s[3]), NVML_SUCCESS);
	WANT(metric(s[2], s[3], 5, &v), NVML_SUCCESS);
	NEAR(v, 20, 1e-6);
	WANT(metric(s[0], s[3], 5, &v), NVML_ERROR_INVALID_ARGUMENT); // of different scopes
	WANT(nvmlGpmMigSampleGet(d, 3, s[2]), NVML_ERROR_NOT_FOUND);

	tell("board h100\nload 0 50\nmig 0 on 1g.10gb:7:0\n"); // the metric's own load is gone
	WANT(nvmlGpmSampleGet(d, s[0]), NVML_SUCCESS);
	rest(150);
	WANT(nvmlGpmSampleGet(d, s[1]), NVML_SUCCESS);
	WANT(metric(s[0], s[1], 5, &v), NVML_SUCCESS);
	NEAR(v, 20, 1e-6);
	tell("board a100\n");
	WANT(nvmlGpmQueryDeviceSupport(d, &support), NVML_SUCCESS);
	WANT(support.isSupportedDevice, 0);
	WANT(nvmlGpmSampleGet(d, s[0]), NVML_ERROR_NOT_SUPPORTED);
}

static double field(nvmlDevice_t d, unsigned int id, unsigned int scope) {
	nvmlFieldValue_t v = {.fieldId = id, .scopeId = scope};
	WANT(nvmlDeviceGetFieldValues(d, 1, &v), NVML_SUCCESS);
	WANT(v.nvmlReturn, NVML_SUCCESS);
	WANT(v.valueType, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
	return v.value.ullVal;
}

// Counters are the integrals of what the file says, and go on from where they were when it changes.
void counters(void) {
	tell("board h100\nset 0 power 400000\nset 0 nvlink_tx 1024\nset 0 pcie_tx 1000000\n");
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	nvmlDevice_t d = device(0);
	double from = seconds(), mj = field(d, 83, 0), pcie = field(d, 197, 0), all = field(d, 138, ~0u), one = field(d, 138, 3);
	NEAR(all / one, 18, 1e-3);
	rest(300);
	double changed = seconds();
	tell("board h100\nset 0 power 0\nset 0 nvlink_tx 1024\nset 0 pcie_tx 1000000\nlink 0 3 down\n");
	rest(200);
	double to = seconds();
	NEAR(field(d, 83, 0) - mj, 400000 * (changed - from), 400000 * 0.03);
	NEAR(field(d, 197, 0) - pcie, 1000000 * (to - from), 1000000 * 0.03);
	NEAR(field(d, 138, 3) - one, 1024 * (changed - from), 1024 * 0.03);
	NEAR(field(d, 138, ~0u) - all, 1024 * (17 * (to - from) + changed - from), 18 * 1024 * 0.03);
	WANT(field(d, 83, 0), field(d, 191, 0));
	nvmlEnableState_t up;
	WANT(nvmlDeviceGetNvLinkState(d, 3, &up), NVML_SUCCESS);
	WANT(up, 0);
	WANT(nvmlDeviceGetNvLinkState(d, 4, &up), NVML_SUCCESS);
	WANT(up, 1);
	WANT(nvmlDeviceGetNvLinkState(d, 40, &up), NVML_ERROR_INVALID_ARGUMENT);
}
