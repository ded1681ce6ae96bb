// What is told of the driver as a whole.
#include "config.h"

#include <stdio.h>
#include <string.h>

const char *nvmlErrorString(nvmlReturn_t code) {
	switch (code) {
	case NVML_SUCCESS: return "The operation was successful";
	case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
	case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
	case NVML_ERROR_NOT_FOUND: return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
	case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
	case NVML_ERROR_TIMEOUT: return "Timeout";
	case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
	case NVML_ERROR_RESET_REQUIRED: return "GPU requires reset";
	case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
	case NVML_ERROR_UNKNOWN: return "Unknown Error";
	default: return "Fake Error";
	}
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
	ENTER();
	return text(version, length, "%s", c->driver);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) {
	ENTER();
	return text(version, length, "%d.%s", c->cuda / 1000, c->driver);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) {
	ENTER();
	*version = c->cuda;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
	ENTER();
	*version = c->cuda;
	return NVML_SUCCESS;
}

#if DRIVER >= 560
nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t *out, unsigned int length) {
	ENTER();
	VERSIONED(out, nvmlSystemDriverBranchInfo_v1);
	return text(out->branch, length < sizeof out->branch ? length : sizeof out->branch, "r%d_00", c->major);
}
#endif

#if DRIVER >= 535
nvmlReturn_t nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t *out) {
	ENTER();
	*out = (nvmlConfComputeSystemState_t){.environment = c->cc[0], .ccFeature = c->cc[1], .devToolsMode = c->cc[2]};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetNvlinkBwMode(unsigned int *mode) {
	const int gpu = 0;
	ENTER();
	if (!has(c, gpu, R_nvlinks)) return NVML_ERROR_NOT_SUPPORTED;
	TAKE(*mode, R_nvlink_bw_mode);
	return NVML_SUCCESS;
}
#endif

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length) {
	ENTER();
	for (int i = 0; i < c->processes.n; i++)
		if (c->processes.at[i].pid == (int)pid) return text(name, length, "/usr/bin/fake-%u", pid);
	return NVML_ERROR_NOT_FOUND;
}
