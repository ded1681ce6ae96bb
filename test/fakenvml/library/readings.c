// What the fake devices measure. Power never changes, so energy is power times uptime.
#include "config.h"

#include <string.h>

static unsigned int draw(int gpu) { return 300000 + 10000 * gpu; } // mW

ANSWER(nvmlDeviceGetPowerUsage, unsigned int, draw(gpu))
ANSWER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, draw(gpu) * (micros(0) / 1000) / 1000)

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t sensor, unsigned int *celsius) {
	ENTER_DEVICE(d);
	*celsius = 50 + gpu;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t d, nvmlTemperatureThresholds_t type, unsigned int *celsius) {
	static const unsigned int limits[] = {92, 89, 95, 87}; // shutdown, slowdown, memory, chip
	ENTER_DEVICE(d);
	if (type > NVML_TEMPERATURE_THRESHOLD_GPU_MAX) return NVML_ERROR_NOT_SUPPORTED;
	*celsius = limits[type];
	return NVML_SUCCESS;
}

static const unsigned long long total = 80ull << 30, used = 10ull << 30, reserved = 1ull << 30;

ANSWER(nvmlDeviceGetMemoryInfo, nvmlMemory_t, ((nvmlMemory_t){.total = total, .free = total - used - reserved, .used = used + reserved}))

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned int *mhz) {
	ENTER_DEVICE(d);
	*mhz = 1000 + 100 * type;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned int *mhz) {
	ENTER_DEVICE(d);
	*mhz = 2000 + 100 * type;
	return NVML_SUCCESS;
}

ANSWER(nvmlDeviceGetUtilizationRates, nvmlUtilization_t, ((nvmlUtilization_t){.gpu = c.load[gpu], .memory = c.load[gpu] / 2}))

#define ENGINE(name, percent) \
	nvmlReturn_t name(nvmlDevice_t d, unsigned int *load, unsigned int *period) { \
		ENTER_DEVICE(d); \
		*load = percent; \
		*period = 166666; \
		return NVML_SUCCESS; \
	}

ENGINE(nvmlDeviceGetEncoderUtilization, 10)
ENGINE(nvmlDeviceGetDecoderUtilization, 20)

// The driver takes a sample every fifth of a second and keeps a hundred.
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t d, nvmlSamplingType_t type, unsigned long long seen,
                                  nvmlValueType_t *kind, unsigned int *count, nvmlSample_t *samples) {
	enum { PERIOD = 200000, KEPT = 100 };
	ENTER_DEVICE(d);
	if (type != NVML_GPU_UTILIZATION_SAMPLES) return NVML_ERROR_NOT_SUPPORTED;
	*kind = NVML_VALUE_TYPE_UNSIGNED_INT;
	if (!samples) {
		*count = KEPT;
		return NVML_SUCCESS;
	}
	unsigned long long last = micros(1) / PERIOD * PERIOD;
	unsigned int n = 0;
	for (unsigned long long t = last - (KEPT - 1) * PERIOD; t <= last && n < *count; t += PERIOD)
		if (t > seen) samples[n++] = (nvmlSample_t){.timeStamp = t, .sampleValue.uiVal = c.load[gpu]};
	*count = n;
	return n ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

ANSWER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, c.throttle[gpu])
ANSWER(nvmlDeviceGetSupportedClocksThrottleReasons, unsigned long long, 0x1ff)

// What came after the oldest driver served.
#ifndef OLD_DRIVER
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, nvmlMemory_v2_t *m) {
	ENTER_DEVICE(d);
	if (m->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	m->total = total;
	m->reserved = reserved;
	m->used = used;
	m->free = total - used - reserved;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t d, nvmlMarginTemperature_t *margin) {
	ENTER_DEVICE(d);
	if (margin->version != nvmlMarginTemperature_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	margin->marginTemperature = 37 - gpu;
	return NVML_SUCCESS;
}

ANSWER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, c.throttle[gpu])
ANSWER(nvmlDeviceGetSupportedClocksEventReasons, unsigned long long, 0x1ff)
ENGINE(nvmlDeviceGetJpgUtilization, 30)
ENGINE(nvmlDeviceGetOfaUtilization, 40)
#endif
