// Who the fake devices are.
#include "config.h"

#include <stdio.h>
#include <string.h>

static struct nvmlDevice_st devices[MAX_GPUS] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, {12}, {13}, {14}, {15}};

const char *nvmlErrorString(nvmlReturn_t code) {
	switch (code) {
	case NVML_SUCCESS: return "The operation was successful";
	case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
	case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
	case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
	default: return "Fake Error";
	}
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
	ENTER(ANY_GPU);
	snprintf(version, length, "%s", c.driver);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
	ENTER(ANY_GPU);
	*version = c.cuda;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
	ENTER(ANY_GPU);
	*count = c.gpus;
	return NVML_SUCCESS;
}

// A lost device still has a handle.
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
	ENTER(ANY_GPU);
	if (index >= (unsigned int)c.gpus) return NVML_ERROR_INVALID_ARGUMENT;
	device->handle = &devices[index];
	return NVML_SUCCESS;
}

ANSWER_TEXT(nvmlDeviceGetUUID, "GPU-00000000-0000-4000-8000-%012x", gpu)
ANSWER_TEXT(nvmlDeviceGetName, "%s", c.model)
ANSWER_TEXT(nvmlDeviceGetSerial, "165012300%04d", gpu)
ANSWER_TEXT(nvmlDeviceGetBoardPartNumber, "000-00000-0000-000")
ANSWER_TEXT(nvmlDeviceGetVbiosVersion, "96.00.00.00.%02X", gpu)
ANSWER(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t, NVML_DEVICE_ARCH_HOPPER)

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *pci) {
	ENTER_DEVICE(d);
	memset(pci, 0, sizeof *pci);
	pci->bus = 0x1a + gpu;
	snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", pci->bus);
	snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02X:00.0", pci->bus);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t d, int *major, int *minor) {
	ENTER_DEVICE(d);
	*major = 9;
	*minor = 0;
	return NVML_SUCCESS;
}
