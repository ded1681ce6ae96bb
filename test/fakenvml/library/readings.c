// What the readings are, one by one.
#include "config.h"

#include <string.h>

static const char *const names[] = {
#define NAME(name, value, step) [R_##name] = #name,
	TRAITS(NAME) METRICS(NAME)
};

int reading_named(const char *name) {
	for (int i = 0; i < READINGS; i++)
		if (names[i] && !strcmp(names[i], name)) return i;
	return -1;
}

static void follow(struct gpu *g, enum reading what, long long v) {
	if (g->value[what] == FOLLOW) g->value[what] = v;
}

// settle fills in what follows from other readings.
void settle(struct gpu *g) {
	const long long *v = g->value;
	follow(g, R_power_average, v[R_power]);
	follow(g, R_power_instant, v[R_power]);
	follow(g, R_mem_load, v[R_load] == NONE ? NONE : v[R_load] / 2);
	follow(g, R_mig_pending, v[R_mig] == NONE ? NONE : g->mig);
	follow(g, R_switch_links, v[R_fabric_state] == NONE ? NONE : v[R_nvlinks]);
}

int has(const struct config *c, int gpu, enum reading what) { return c->gpu[gpu].value[what] != NONE; }

// get is a reading that is there. Garbage is what drivers in trouble have been seen to answer.
long long get(const struct config *c, int gpu, enum reading what) {
	static const long long garbage[] = {0xFFFFFFFFll, 9200000000000000000ll, 808334905ll, -1ll};
	return c->gpu[gpu].garbage && what >= FIRST_METRIC ? garbage[what % 4] : c->gpu[gpu].value[what];
}

ANSWER(nvmlDeviceGetPowerUsage, unsigned int, R_power)
ANSWER(nvmlDeviceGetEnforcedPowerLimit, unsigned int, R_limit)
ANSWER(nvmlDeviceGetPowerManagementLimit, unsigned int, R_limit_requested)
ANSWER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned int, R_limit_default)

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t d, unsigned int *min, unsigned int *max) {
	ENTER_DEVICE(d);
	TAKE(*min, R_limit_min);
	TAKE(*max, R_limit_max);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t d, unsigned long long *millijoules) {
	ENTER_DEVICE(d);
	TAKE(*millijoules, R_power);
	if (!c->gpu[gpu].garbage) *millijoules = energy(c, gpu, now());
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t sensor, unsigned int *celsius) {
	ENTER_DEVICE(d);
	if (sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
	TAKE(*celsius, R_temperature);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t d, nvmlTemperatureThresholds_t type, unsigned int *celsius) {
	static const enum reading limits[] = {R_shutdown, R_slowdown, R_memory_max, R_gpu_max};
	ENTER_DEVICE(d);
	if (type > NVML_TEMPERATURE_THRESHOLD_GPU_MAX) return NVML_ERROR_NOT_SUPPORTED;
	TAKE(*celsius, limits[type]);
	return NVML_SUCCESS;
}

#if DRIVER >= 570
nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t d, nvmlTemperature_t *t) {
	ENTER_DEVICE(d);
	VERSIONED(t, nvmlTemperature_v1);
	if (t->sensorType != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
	TAKE(t->temperature, R_temperature);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t d, nvmlMarginTemperature_t *margin) {
	ENTER_DEVICE(d);
	VERSIONED(margin, nvmlMarginTemperature_v1);
	TAKE(margin->marginTemperature, R_margin);
	return NVML_SUCCESS;
}
#endif

ANSWER(nvmlDeviceGetPerformanceState, nvmlPstates_t, R_pstate)
ANSWER(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, R_persistence)
ANSWER(nvmlDeviceGetComputeMode, nvmlComputeMode_t, R_compute_mode)
ANSWER(nvmlDeviceGetDisplayActive, nvmlEnableState_t, R_display_active)
ANSWER(nvmlDeviceGetDisplayMode, nvmlEnableState_t, R_display_mode)

// Under MIG accounting is off, says the header, and so say the captures.
nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t d, nvmlEnableState_t *mode) {
	ENTER_DEVICE(d);
	TAKE(*mode, R_accounting);
	if (c->gpu[gpu].mig) *mode = NVML_FEATURE_DISABLED;
	return NVML_SUCCESS;
}

#if DRIVER >= 510
ANSWER(nvmlDeviceGetNumFans, unsigned int, R_fans)
#endif

static int fan_there(const struct config *c, int gpu, unsigned int fan) {
	return has(c, gpu, R_fans) && fan < (unsigned int)c->gpu[gpu].value[R_fans];
}

nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t d, unsigned int fan, unsigned int *percent) {
	ENTER_DEVICE(d);
	if (!has(c, gpu, R_fans)) return NVML_ERROR_NOT_SUPPORTED;
	if (!fan_there(c, gpu, fan)) return NVML_ERROR_INVALID_ARGUMENT;
	TAKE(*percent, R_fan);
	return NVML_SUCCESS;
}

#if DRIVER >= 520
nvmlReturn_t nvmlDeviceGetTargetFanSpeed(nvmlDevice_t d, unsigned int fan, unsigned int *percent) {
	ENTER_DEVICE(d);
	if (!has(c, gpu, R_fans)) return NVML_ERROR_NOT_SUPPORTED;
	if (!fan_there(c, gpu, fan)) return NVML_ERROR_INVALID_ARGUMENT;
	TAKE(*percent, R_fan_target);
	return NVML_SUCCESS;
}
#endif

#if DRIVER >= 570
nvmlReturn_t nvmlDeviceGetFanSpeedRPM(nvmlDevice_t d, nvmlFanSpeedInfo_t *f) {
	ENTER_DEVICE(d);
	VERSIONED(f, nvmlFanSpeedInfo_v1);
	if (!has(c, gpu, R_fans)) return NVML_ERROR_NOT_SUPPORTED;
	if (!fan_there(c, gpu, f->fan)) return NVML_ERROR_INVALID_ARGUMENT;
	TAKE(f->speed, R_fan_rpm);
	return NVML_SUCCESS;
}
#endif
