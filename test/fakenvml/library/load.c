// How fast and how busy the GPUs are, and what holds them back.
#include "config.h"

static nvmlReturn_t clock_of(const struct config *c, int gpu, const enum reading *readings, nvmlClockType_t type, unsigned int *mhz) {
	if (type >= NVML_CLOCK_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
	TAKE(*mhz, readings[type]);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned int *mhz) {
	static const enum reading clocks[] = {R_clock_graphics, R_clock_sm, R_clock_mem, R_clock_video};
	ENTER_DEVICE(d);
	return clock_of(c, gpu, clocks, type, mhz);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned int *mhz) {
	static const enum reading clocks[] = {R_max_clock_graphics, R_max_clock_sm, R_max_clock_mem, R_max_clock_video};
	ENTER_DEVICE(d);
	return clock_of(c, gpu, clocks, type, mhz);
}

nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t d, nvmlClockType_t type, unsigned int *mhz) {
	static const enum reading clocks[] = {R_app_clock_graphics, R_app_clock_graphics, R_app_clock_mem};
	ENTER_DEVICE(d);
	if (type > NVML_CLOCK_MEM) return NVML_ERROR_NOT_SUPPORTED;
	return clock_of(c, gpu, clocks, type, mhz);
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t *out) {
	ENTER_DEVICE(d);
	NOT_UNDER_MIG();
	TAKE(out->gpu, R_load);
	TAKE(out->memory, R_mem_load);
	return NVML_SUCCESS;
}

#define ENGINE(name, what) \
	nvmlReturn_t name(nvmlDevice_t d, unsigned int *percent, unsigned int *period) { \
		ENTER_DEVICE(d); \
		NOT_UNDER_MIG(); \
		TAKE(*percent, what); \
		*period = 166666; \
		return NVML_SUCCESS; \
	}

ENGINE(nvmlDeviceGetEncoderUtilization, R_encoder)
ENGINE(nvmlDeviceGetDecoderUtilization, R_decoder)
#if DRIVER >= 535
ENGINE(nvmlDeviceGetJpgUtilization, R_jpeg)
ENGINE(nvmlDeviceGetOfaUtilization, R_ofa)
#endif

nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t d, unsigned int *sessions, unsigned int *fps, unsigned int *latency) {
	ENTER_DEVICE(d);
	TAKE(*sessions, R_enc_sessions);
	TAKE(*fps, R_enc_fps);
	TAKE(*latency, R_enc_latency);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFBCStats(nvmlDevice_t d, nvmlFBCStats_t *out) {
	ENTER_DEVICE(d);
	TAKE(out->sessionsCount, R_fbc_sessions);
	TAKE(out->averageFPS, R_fbc_fps);
	TAKE(out->averageLatency, R_fbc_latency);
	return NVML_SUCCESS;
}

// The driver takes a sample every fifth of a second and keeps a hundred. Each is what held then.
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t d, nvmlSamplingType_t type, unsigned long long seen,
                                  nvmlValueType_t *kind, unsigned int *count, nvmlSample_t *samples) {
	enum { PERIOD = 200000, KEPT = 100 };
	static const enum reading what[] = {R_power, R_load, R_mem_load, R_encoder, R_decoder, R_clock_sm, R_clock_mem, R_module_power, R_jpeg, R_ofa};
	ENTER_DEVICE(d);
	if (type >= sizeof what / sizeof *what || !has(c, gpu, what[type])) return NVML_ERROR_NOT_SUPPORTED;
	if (type >= NVML_GPU_UTILIZATION_SAMPLES && type <= NVML_DEC_UTILIZATION_SAMPLES) NOT_UNDER_MIG();
	*kind = NVML_VALUE_TYPE_UNSIGNED_INT;
	if (!samples) {
		*count = KEPT;
		return NVML_SUCCESS;
	}
	unsigned long long last = micros(1) / PERIOD * PERIOD;
	unsigned int n = 0;
	for (unsigned long long t = last - (KEPT - 1) * PERIOD; t <= last && n < *count; t += PERIOD) {
		const struct config *then = config_at(c, t);
		if (t > seen && has(then, gpu, what[type]))
			samples[n++] = (nvmlSample_t){.timeStamp = t, .sampleValue.uiVal = get(then, gpu, what[type])};
	}
	*count = n;
	return n ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

ANSWER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, R_reasons)
ANSWER(nvmlDeviceGetSupportedClocksThrottleReasons, unsigned long long, R_reasons_supported)
#if DRIVER >= 535
ANSWER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, R_reasons)
ANSWER(nvmlDeviceGetSupportedClocksEventReasons, unsigned long long, R_reasons_supported)
#endif
