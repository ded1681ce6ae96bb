// GPUs and drivers that come and go.
#include "probe.h"

#include <unistd.h>

static unsigned int count(void) {
	unsigned int n = 0;
	WANT(nvmlDeviceGetCount_v2(&n), NVML_SUCCESS);
	return n;
}

static nvmlReturn_t power(nvmlDevice_t d) {
	unsigned int mw;
	return nvmlDeviceGetPowerUsage(d, &mw);
}

// A GPU that has fallen off the bus stays so until Init, which passes it over while it is away.
void fallen(void) {
	unsigned int n;
	tell("gpus 3\n");
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	nvmlDevice_t first = device(1), last = device(2);
	WANT(power(first), NVML_SUCCESS);
	tell("gpus 3\nfallen 1\n");
	WANT(power(first), NVML_ERROR_GPU_IS_LOST);
	WANT(power(last), NVML_SUCCESS);
	WANT(count(), 3);
	tell("gpus 3\n");
	WANT(power(first), NVML_ERROR_GPU_IS_LOST);

	tell("gpus 3\nfallen 1\n");
	WANT(nvmlShutdown(), NVML_SUCCESS);
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	WANT(count(), 2);
	nvmlDevice_t moved = device(1);
	WANT(nvmlDeviceGetMinorNumber(moved, &n), NVML_SUCCESS);
	WANT(n, 2);
	WANT(nvmlDeviceGetIndex(moved, &n), NVML_SUCCESS);
	WANT(n, 1);
	WANT(power(last), NVML_ERROR_INVALID_ARGUMENT); // a handle of before

	tell("gpus 3\n");
	WANT(count(), 2);
	WANT(nvmlShutdown(), NVML_SUCCESS);
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	WANT(count(), 3);
	WANT(power(device(1)), NVML_SUCCESS);

	tell("gpus 3\nlost 1\n"); // this one comes back by itself
	WANT(power(device(1)), NVML_ERROR_GPU_IS_LOST);
	tell("gpus 3\n");
	WANT(power(device(1)), NVML_SUCCESS);
}

void enumerated(void) {
	tell("gpus 1\n");
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	nvmlDevice_t d;
	tell("gpus 64\n");
	WANT(count(), 64);
	d = device(63);
	WANT(power(d), NVML_SUCCESS);
	tell("gpus 2\n");
	WANT(count(), 2);
	WANT(power(d), NVML_ERROR_GPU_IS_LOST);
	WANT(nvmlDeviceGetHandleByIndex_v2(2, &d), NVML_ERROR_INVALID_ARGUMENT);
	WANT(nvmlShutdown(), NVML_SUCCESS);

	tell("gpus 2\nenumerate at-init\n");
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	tell("gpus 3\nenumerate at-init\n");
	WANT(count(), 2);
	WANT(nvmlInit_v2(), NVML_SUCCESS); // one more user is no new beginning
	WANT(count(), 2);
	WANT(nvmlShutdown(), NVML_SUCCESS);
	WANT(nvmlShutdown(), NVML_SUCCESS);
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	WANT(count(), 3);

	tell("gpus 3\nfail nvmlDeviceGetHandleByIndex_v2 17 1\n"); // one GPU is bad
	WANT(nvmlDeviceGetHandleByIndex_v2(0, &d), NVML_SUCCESS);
	WANT(nvmlDeviceGetHandleByIndex_v2(1, &d), NVML_ERROR_OPERATING_SYSTEM);
}

// A driver that was taken away is not back before Init.
void unloaded(void) {
	unsigned long long mj, before;
	WANT(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
	tell("unload\n");
	WANT(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
	tell("mismatch\n");
	WANT(nvmlInit_v2(), NVML_ERROR_LIB_RM_VERSION_MISMATCH);
	tell("gpus 1\nset 0 power 2000000000\n"); // so much that what is counted anew is less, however slow the machine is
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	nvmlDevice_t d = device(0);
	usleep(50000);
	WANT(nvmlDeviceGetTotalEnergyConsumption(d, &before), NVML_SUCCESS);
	tell("unload\n");
	WANT(power(d), NVML_ERROR_DRIVER_NOT_LOADED);
	tell("gpus 1\n");
	WANT(power(d), NVML_ERROR_DRIVER_NOT_LOADED);
	WANT(nvmlShutdown(), NVML_SUCCESS);
	WANT(power(d), NVML_ERROR_UNINITIALIZED);
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	WANT(power(d), NVML_ERROR_INVALID_ARGUMENT);
	WANT(nvmlDeviceGetTotalEnergyConsumption(device(0), &mj), NVML_SUCCESS);
	WANT(mj < before, 1); // it counts from the driver's coming
}
