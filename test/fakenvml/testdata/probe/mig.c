// GPUs in parts.
#include "probe.h"

static nvmlReturn_t field(nvmlDevice_t d, unsigned int id) {
	nvmlFieldValue_t v = {.fieldId = id};
	WANT(nvmlDeviceGetFieldValues(d, 1, &v), NVML_SUCCESS);
	return v.nvmlReturn;
}

// What a GPU answers while it is in parts, and what it does not.
void partitioned(void) {
	nvmlUtilization_t u;
	nvmlEnableState_t mode;
	nvmlRowRemapperHistogramValues_t banks;
	nvmlValueType_t type;
	nvmlProcessUtilizationSample_t samples[4];
	unsigned int a, b, n, e;
	unsigned long long big;
	tell("board h100\nprocess 0 7 1000 50\n");
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	nvmlDevice_t d = device(0), m;
	for (int mig = 0; mig < 2; mig++) {
		const nvmlReturn_t refused = mig ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
		if (mig) tell("board h100\nprocess 0 7 1000 50\nmig 0 on 1g.10gb:7:0\n");
		WANT(nvmlDeviceGetUtilizationRates(d, &u), refused);
		WANT(nvmlDeviceGetEncoderUtilization(d, &a, &b), refused);
		WANT(nvmlDeviceGetDecoderUtilization(d, &a, &b), refused);
		WANT(nvmlDeviceGetJpgUtilization(d, &a, &b), refused);
		WANT(nvmlDeviceGetOfaUtilization(d, &a, &b), refused);
		for (int t = NVML_GPU_UTILIZATION_SAMPLES; t <= NVML_DEC_UTILIZATION_SAMPLES; t++)
			WANT(nvmlDeviceGetSamples(d, t, 0, &type, &n, NULL), refused);
		WANT(nvmlDeviceGetRemappedRows(d, &a, &b, &n, &e), refused);
		for (unsigned int id = 142; id <= 145; id++) WANT(field(d, id), refused);
		n = 4;
		WANT(nvmlDeviceGetProcessUtilization(d, samples, &n, 0), refused);
		// and these it does
		WANT(nvmlDeviceGetSamples(d, NVML_TOTAL_POWER_SAMPLES, 0, &type, &n, NULL), NVML_SUCCESS);
		WANT(nvmlDeviceGetPowerUsage(d, &a), NVML_SUCCESS);
		WANT(nvmlDeviceGetTotalEnergyConsumption(d, &big), NVML_SUCCESS);
		WANT(nvmlDeviceGetRowRemapperHistogram(d, &banks), NVML_SUCCESS);
		WANT(nvmlDeviceGetAccountingMode(d, &mode), NVML_SUCCESS);
		WANT(nvmlDeviceGetPcieReplayCounter(d, &a), NVML_SUCCESS);
		WANT(field(d, 230), NVML_SUCCESS);
		WANT(field(d, 82), NVML_SUCCESS);
	}
	WANT(nvmlDeviceGetMigDeviceHandleByIndex(d, 0, &m), NVML_SUCCESS);
	WANT(nvmlDeviceGetPowerUsage(m, &a), NVML_ERROR_NOT_SUPPORTED);
	WANT(nvmlDeviceGetPcieThroughput(m, 0, &a), NVML_ERROR_NOT_SUPPORTED);
	WANT(nvmlDeviceGetMemoryErrorCounter(m, 0, 0, NVML_MEMORY_LOCATION_DRAM, &big), NVML_SUCCESS);
	WANT(nvmlDeviceGetGpuInstanceId(d, &a), NVML_ERROR_NOT_SUPPORTED);
	tell("board a100\nmig 0 on\n"); // without an instance rows are told
	WANT(nvmlDeviceGetRemappedRows(d, &a, &b, &n, &e), NVML_SUCCESS);
	tell("board l40s\n");
	WANT(nvmlDeviceGetMigMode(d, &a, &b), NVML_ERROR_NOT_SUPPORTED);
	WANT(nvmlDeviceGetMaxMigDeviceCount(d, &n), NVML_SUCCESS);
	WANT(n, 0);
}

// The parts, and what becomes of their handles when they are cut anew.
void repartitioned(void) {
	char text[96], uuid[96];
	unsigned int n;
	nvmlMemory_v2_t memory = {.version = nvmlMemory_v2};
	nvmlMemory_t old;
	nvmlBAR1Memory_t bar;
	nvmlDeviceAttributes_t is;
	nvmlGpuInstance_t gi;
	nvmlGpuInstanceInfo_t info;
	nvmlDevice_t d, m, other, parent;
	tell("board h100\nmig 0 on 1g.10gb:7:0,-,1c.3g.40gb:2:0,2c.3g.40gb:2:1\nprocess 0 42 1000000 2 1\nused 0 7 5000\n");
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	d = device(0);
	WANT(nvmlDeviceGetMaxMigDeviceCount(d, &n), NVML_SUCCESS);
	WANT(n, 7);
	WANT(nvmlDeviceGetMigDeviceHandleByIndex(d, 1, &m), NVML_ERROR_NOT_FOUND);
	WANT(nvmlDeviceGetMigDeviceHandleByIndex(d, 4, &m), NVML_ERROR_NOT_FOUND);
	WANT(nvmlDeviceGetMigDeviceHandleByIndex(d, 0, &m), NVML_SUCCESS);
	WANT(nvmlDeviceGetMigDeviceHandleByIndex(d, 3, &other), NVML_SUCCESS);

	WANT(nvmlDeviceGetName(m, text, sizeof text), NVML_SUCCESS);
	TEXT(text, "NVIDIA H100 80GB HBM3 MIG 1g.10gb");
	WANT(nvmlDeviceGetUUID(m, uuid, sizeof uuid), NVML_SUCCESS);
	TEXT(uuid, "MIG-00000000-0000-5000-8000-000000070000");
	WANT(nvmlDeviceGetHandleByUUID(uuid, &parent), NVML_SUCCESS);
	WANT(parent.handle == m.handle, 1);
	WANT(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(m, &parent), NVML_SUCCESS);
	WANT(parent.handle == d.handle, 1);
	WANT(nvmlDeviceIsMigDeviceHandle(m, &n), NVML_SUCCESS);
	WANT(n, 1);
	WANT(nvmlDeviceGetGpuInstanceId(other, &n), NVML_SUCCESS);
	WANT(n, 2);
	WANT(nvmlDeviceGetComputeInstanceId(other, &n), NVML_SUCCESS);
	WANT(n, 1);
	WANT(nvmlDeviceGetIndex(other, &n), NVML_SUCCESS);
	WANT(n, 3);
	WANT(nvmlDeviceGetAttributes_v2(other, &is), NVML_SUCCESS);
	WANT(is.gpuInstanceSliceCount, 3);
	WANT(is.computeInstanceSliceCount, 2);
	WANT(is.memorySizeMB, 40 << 10);
	WANT(nvmlDeviceGetMemoryInfo_v2(m, &memory), NVML_SUCCESS);
	WANT(memory.total, 10ull << 30);
	WANT(memory.used, 5000);
	WANT(nvmlDeviceGetMemoryInfo(other, &old), NVML_SUCCESS);
	WANT(old.used, 1000000); // of its instance's process
	WANT(nvmlDeviceGetBAR1MemoryInfo(m, &bar), NVML_SUCCESS);
	WANT(bar.bar1Total, 10ull << 30);
	WANT(nvmlDeviceGetGpuInstanceById(d, 2, &gi), NVML_SUCCESS);
	WANT(nvmlGpuInstanceGetInfo(gi, &info), NVML_SUCCESS);
	WANT(info.id, 2);
	WANT(nvmlDeviceGetGpuInstanceById(d, 3, &gi), NVML_ERROR_NOT_FOUND);

	tell("board h100\nmig 0 on 1c.3g.40gb:2:0,2c.3g.40gb:2:1\n");
	WANT(nvmlDeviceGetUUID(m, text, sizeof text), NVML_ERROR_NOT_FOUND);
	WANT(nvmlDeviceGetIndex(other, &n), NVML_SUCCESS); // it was not touched, and has moved
	WANT(n, 1);
	tell("board h100\nmig 0 on 1g.10gb:7:0\n");
	WANT(nvmlDeviceGetUUID(m, text, sizeof text), NVML_SUCCESS);
	TEXT(text, uuid); // the same place again
	tell("board h100\n");
	WANT(nvmlDeviceGetUUID(m, text, sizeof text), NVML_ERROR_NOT_FOUND);
	WANT(nvmlShutdown(), NVML_SUCCESS);
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	WANT(nvmlDeviceGetUUID(m, text, sizeof text), NVML_ERROR_INVALID_ARGUMENT);
}
