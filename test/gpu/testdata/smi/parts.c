// The fabric a board is in, its MIG instances, and the processes on it.
#include "smi.h"

#include <stdio.h>
#include <string.h>

void tell_fabric(nvmlDevice_t d) {
	static const char *const states[] = {"N/A", "Not Started", "In Progress", "Completed"}, *const summaries[] = {"N/A", "Healthy", "Unhealthy", "Limited Capacity"};
	static const char *const truth[] = {"N/A", "True", "False", "N/A"}, *const width[] = {"N/A", "Degraded", "Full", "N/A"};
	nvmlGpuFabricInfo_v3_t f = {.version = nvmlGpuFabricInfo_v3};
	nvmlReturn_t code = CALL(nvmlDeviceGetGpuFabricInfoV, d, (void *)&f);
	if (code == NVML_ERROR_ARGUMENT_VERSION_MISMATCH) {
		f.version = nvmlGpuFabricInfo_v2;
		code = CALL(nvmlDeviceGetGpuFabricInfoV, d, (void *)&f);
	}
	if (code == NVML_ERROR_FUNCTION_NOT_FOUND) { // before R550
		nvmlGpuFabricInfo_t first = {0};
		code = CALL(nvmlDeviceGetGpuFabricInfo, d, &first);
		f.state = first.state, f.status = first.status, f.cliqueId = first.cliqueId;
		memcpy(f.clusterUuid, first.clusterUuid, sizeof f.clusterUuid);
	}
	const unsigned int mask = f.healthMask, configured = mask >> NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_INCORRECT_CONFIGURATION & 15;
	char cluster[40] = "";
	for (int i = 0; i < 16; i++) sprintf(cluster + strlen(cluster), "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", f.clusterUuid[i]);
	say("fabric/state", code, "%s", states[f.state & 3]);
	say("fabric/status", code, "%s", f.status ? "Failure" : "Success");
	say("fabric/cliqueId", code, "%u", f.cliqueId);
	say("fabric/clusterUuid", code, "%s", cluster);
	say("fabric/health/summary", code, "%s", summaries[f.healthSummary & 3]);
	say("fabric/health/bandwidth", code, "%s", width[mask & 3]);
	say("fabric/health/route_recovery_in_progress", code, "%s", truth[mask >> 2 & 3]);
	say("fabric/health/route_unhealthy", code, "%s", truth[mask >> 4 & 3]);
	say("fabric/health/access_timeout_recovery", code, "%s", truth[mask >> 6 & 3]);
	say("fabric/health/incorrect_configuration", code, "%s", !configured ? "N/A" : configured == 1 ? "None" : "No Partition");
	say("fabric/health/partition_assigned", code, "%s", truth[mask >> NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_PARTITION_ASSIGNED & 3]);
}

void tell_instances(nvmlDevice_t d) {
	unsigned int most = 0, none = 1;
	CALL(nvmlDeviceGetMaxMigDeviceCount, d, &most);
	for (unsigned int i = 0; i < most; i++) {
		nvmlDevice_t part;
		unsigned int gi = 0, ci = 0;
		nvmlDeviceAttributes_t a = {0};
		nvmlMemory_v2_t m = {.version = nvmlMemory_v2};
		char path[96];
		if (CALL(nvmlDeviceGetMigDeviceHandleByIndex, d, i, &part)) continue;
		none = 0;
		CALL(nvmlDeviceGetGpuInstanceId, part, &gi);
		CALL(nvmlDeviceGetComputeInstanceId, part, &ci);
#define PART(name, code, ...) (snprintf(path, sizeof path, "mig_devices/mig_device#%u/%s", i, name), say(path, code, __VA_ARGS__))
		PART("index", NVML_SUCCESS, "%u", i);
		PART("gpu_instance_id", NVML_SUCCESS, "%u", gi);
		PART("compute_instance_id", NVML_SUCCESS, "%u", ci);
		nvmlReturn_t code = CALL(nvmlDeviceGetAttributes_v2, part, &a);
		PART("device_attributes/shared/multiprocessor_count", code, "%u", a.multiprocessorCount);
		code = CALL(nvmlDeviceGetMemoryInfo_v2, part, &m);
		PART("fb_memory_usage/total", code, "%llu MiB", mib(m.total));
		PART("fb_memory_usage/reserved", code, "%llu MiB", mib(m.reserved));
		PART("fb_memory_usage/used", code, "%llu MiB", mib(m.used));
		PART("fb_memory_usage/free", code, "%llu MiB", mib(m.free));
	}
	if (none) say("mig_devices", NVML_SUCCESS, "None");
}

static int number;

static void list(const char *type, unsigned int n, const nvmlProcessInfo_t *all) {
	for (unsigned int i = 0; i < n; i++, number++) {
		char path[96];
#define PROCESS(name, code, ...) (snprintf(path, sizeof path, "processes/process_info#%d/%s", number, name), say(path, code, __VA_ARGS__))
		PROCESS("pid", NVML_SUCCESS, "%u", all[i].pid);
		PROCESS("type", NVML_SUCCESS, "%s", type);
		PROCESS("process_name", NVML_SUCCESS, "a.out");
		PROCESS("used_memory", all[i].usedGpuMemory == ~0ull ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS, "%llu MiB", mib(all[i].usedGpuMemory));
		PROCESS("gpu_instance_id", all[i].gpuInstanceId == ~0u ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS, "%u", all[i].gpuInstanceId);
		PROCESS("compute_instance_id", all[i].computeInstanceId == ~0u ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS, "%u", all[i].computeInstanceId);
	}
}

void tell_processes(nvmlDevice_t d) {
	nvmlProcessInfo_t all[64];
	unsigned int n = 64;
	number = 0;
	if (!CALL(nvmlDeviceGetComputeRunningProcesses_v3, d, &n, all)) list("C", n, all);
	n = 64;
	if (!CALL(nvmlDeviceGetGraphicsRunningProcesses_v3, d, &n, all)) list("G", n, all);
	n = 64;
	if (!CALL(nvmlDeviceGetMPSComputeRunningProcesses_v3, d, &n, all)) list("M+C", n, all);
}
