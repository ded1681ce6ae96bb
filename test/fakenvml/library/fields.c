// The fake devices' numbered fields, with the numbers NVIDIA has moved about.
#include "config.h"

static void count(nvmlFieldValue_t *v, unsigned long long n) {
	v->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
	v->value.ullVal = n;
}

static void number(nvmlFieldValue_t *v, unsigned int n) {
	v->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
	v->value.uiVal = n;
}

// throttled says which of the three newer throttle times a number is, 0 to 2, or -1.
static int throttled(unsigned int id, int driver) {
	unsigned int first = driver >= 590 ? 269 : 251;
	return driver >= 575 && id >= first && id < first + 3 ? (int)(id - first) : -1;
}

static nvmlReturn_t fill(nvmlFieldValue_t *v, int gpu, const struct config *c) {
	const unsigned long long second = 1000000000;
	int time = throttled(v->fieldId, driver_major(c));
	if (time >= 0) {
		count(v, (time + 3) * second);
		return NVML_SUCCESS;
	}
	switch (v->fieldId) {
	case NVML_FI_DEV_ECC_CURRENT: case NVML_FI_DEV_ECC_PENDING: number(v, 1); break;
	case NVML_FI_DEV_ECC_SBE_VOL_TOTAL: count(v, 3); break;
	case NVML_FI_DEV_ECC_DBE_VOL_TOTAL: count(v, 0); break;
	case NVML_FI_DEV_ECC_SBE_AGG_TOTAL: count(v, 30); break;
	case NVML_FI_DEV_ECC_DBE_AGG_TOTAL: count(v, 1); break;
	case NVML_FI_DEV_PERF_POLICY_POWER: count(v, 1 * second); break;
	case NVML_FI_DEV_PERF_POLICY_SYNC_BOOST: count(v, 2 * second); break;
	case NVML_FI_DEV_MEMORY_TEMP: number(v, 60 + gpu); break;
	case NVML_FI_DEV_POWER_MIN_LIMIT: number(v, 200000); break;
	case NVML_FI_DEV_POWER_MAX_LIMIT: case NVML_FI_DEV_POWER_DEFAULT_LIMIT: number(v, 700000); break;
	case NVML_FI_DEV_POWER_CURRENT_LIMIT: case NVML_FI_DEV_POWER_REQUESTED_LIMIT: number(v, 650000); break;
	case 251: case 252: case 253: number(v, 1); break; // switches of power smoothing in these drivers
	default: return NVML_ERROR_NOT_SUPPORTED;
	}
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t d, int n, nvmlFieldValue_t *values) {
	ENTER_DEVICE(d);
	for (int i = 0; i < n; i++) {
		values[i].timestamp = micros(1);
		values[i].nvmlReturn = fill(&values[i], gpu, &c);
	}
	return NVML_SUCCESS;
}
