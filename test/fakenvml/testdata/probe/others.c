// Processes, events, identities, delays.
#include "probe.h"

#include <stdlib.h>
#include <time.h>

void processes(void) {
	nvmlProcessInfo_t infos[8];
	nvmlProcessUtilizationSample_t used[8];
	nvmlProcessesUtilizationInfo_t info = {.version = nvmlProcessesUtilizationInfo_v1};
	nvmlProcessUtilizationInfo_v1_t entries[8];
	char name[64];
	unsigned int n = 1;
	nvmlDevice_t m;
	tell("process 0 10 1000 30\nprocess 0 11 none\nprocess 0 12 500 graphics\nprocess 0 13 500 5 mps\n");
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	nvmlDevice_t d = device(0);
	WANT(nvmlDeviceGetComputeRunningProcesses_v3(d, &n, infos), NVML_ERROR_INSUFFICIENT_SIZE);
	WANT(n, 2);
	WANT(nvmlDeviceGetComputeRunningProcesses_v3(d, &n, infos), NVML_SUCCESS);
	WANT(infos[1].pid, 11);
	WANT(infos[1].usedGpuMemory, ~0ull);
	WANT(infos[1].gpuInstanceId, ~0u);
	n = 8;
	WANT(nvmlDeviceGetGraphicsRunningProcesses_v3(d, &n, infos), NVML_SUCCESS);
	WANT(n, 1);
	n = 8;
	WANT(nvmlDeviceGetMPSComputeRunningProcesses_v3(d, &n, infos), NVML_SUCCESS);
	WANT(infos[0].pid, 13);
	n = 8;
	WANT(nvmlDeviceGetProcessUtilization(d, NULL, &n, 0), NVML_ERROR_INSUFFICIENT_SIZE);
	WANT(n, 2);
	WANT(nvmlDeviceGetProcessUtilization(d, used, &n, 0), NVML_SUCCESS);
	WANT(used[0].smUtil, 30);
	WANT(nvmlDeviceGetProcessUtilization(d, used, &n, used[0].timeStamp + 1000000), NVML_ERROR_NOT_FOUND);
	WANT(nvmlDeviceGetProcessUtilization(device(1), used, &n, 0), NVML_ERROR_NOT_FOUND);
	WANT(nvmlDeviceGetProcessesUtilizationInfo(d, &info), NVML_ERROR_INSUFFICIENT_SIZE);
	info.procUtilArray = entries;
	WANT(nvmlDeviceGetProcessesUtilizationInfo(d, &info), NVML_SUCCESS);
	WANT(entries[1].pid, 13);
	WANT(nvmlSystemGetProcessName(10, name, sizeof name), NVML_SUCCESS);
	TEXT(name, "/usr/bin/fake-10");
	WANT(nvmlSystemGetProcessName(99, name, sizeof name), NVML_ERROR_NOT_FOUND);

	tell("mig 0 on 1g.10gb:7:0,1g.10gb:8:0\nprocess 0 20 1000 7 0\nprocess 0 21 1000 8 0\n");
	n = 8;
	WANT(nvmlDeviceGetComputeRunningProcesses_v3(d, &n, infos), NVML_SUCCESS);
	WANT(n, 2);
	WANT(infos[1].gpuInstanceId, 8);
	WANT(nvmlDeviceGetMigDeviceHandleByIndex(d, 1, &m), NVML_SUCCESS);
	n = 8;
	WANT(nvmlDeviceGetComputeRunningProcesses_v3(m, &n, infos), NVML_SUCCESS);
	WANT(n, 1);
	WANT(infos[0].pid, 21);
}

void events(void) {
	nvmlEventSet_t set;
	nvmlEventData_t e;
	tell("set * events 0x8008\n");
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	WANT(nvmlEventSetCreate(&set), NVML_SUCCESS);
	WANT(nvmlDeviceRegisterEvents(device(0), 0x10, set), NVML_ERROR_NOT_SUPPORTED);
	WANT(nvmlDeviceRegisterEvents(device(0), 0x8008, set), NVML_SUCCESS);
	WANT(nvmlEventSetWait_v2(set, &e, 10), NVML_ERROR_TIMEOUT);
	tell("set * events 0x8008\nxid 0 31\nxid 0 43 7 0\nevent 0 0x8000 2\n");
	WANT(nvmlEventSetWait_v2(set, &e, 1000), NVML_SUCCESS);
	WANT(e.eventData, 31);
	WANT(e.gpuInstanceId, ~0u);
	WANT(nvmlEventSetWait_v2(set, &e, 1000), NVML_SUCCESS);
	WANT(e.eventData, 43);
	WANT(e.gpuInstanceId, 7);
	WANT(nvmlEventSetWait_v2(set, &e, 1000), NVML_SUCCESS);
	WANT(e.eventType, 0x8000);
	tell("xids last\nset * events 0x8008\nxid 0 31\nxid 0 43\nevent 0 0x8000 2\nxid 0 1\nxid 0 2\nxid 0 3\n");
	WANT(nvmlEventSetWait_v2(set, &e, 1000), NVML_SUCCESS);
	WANT(e.eventData, 3);
	WANT(nvmlEventSetWait_v2(set, &e, 10), NVML_ERROR_TIMEOUT);
	tell("lost 0\n");
	WANT(nvmlEventSetWait_v2(set, &e, 10), NVML_ERROR_GPU_IS_LOST);
	WANT(nvmlEventSetFree(set), NVML_SUCCESS);
}

void identities(void) {
	char text[96];
	nvmlPciInfo_t pci;
	nvmlConfComputeSystemState_t cc;
	nvmlDevice_t d, found;
	tell("gpus 4 # four of them\n\n# and a remark\ncc 2 1 0\n"
	     "uuid 1 GPU-of-our-own\nserial 0 TWIN\nserial 1 TWIN\nserial 2 none\npci 3 0001:e3:02.0\nboard h200 2\n");
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	WANT(nvmlSystemGetConfComputeState(&cc), NVML_SUCCESS);
	WANT(cc.ccFeature, 1);
	d = device(1);
	WANT(nvmlDeviceGetUUID(d, text, sizeof text), NVML_SUCCESS);
	TEXT(text, "GPU-of-our-own");
	WANT(nvmlDeviceGetHandleByUUID("GPU-of-our-own", &found), NVML_SUCCESS);
	WANT(found.handle == d.handle, 1);
	WANT(nvmlDeviceGetSerial(d, text, sizeof text), NVML_SUCCESS);
	TEXT(text, "TWIN");
	WANT(nvmlDeviceGetSerial(device(2), text, sizeof text), NVML_ERROR_NOT_SUPPORTED);
	WANT(nvmlDeviceGetName(device(2), text, sizeof text), NVML_SUCCESS);
	TEXT(text, "NVIDIA H200");
	WANT(nvmlDeviceGetName(device(2), text, 5), NVML_ERROR_INSUFFICIENT_SIZE);
	WANT(nvmlDeviceGetPciInfo_v3(device(3), &pci), NVML_SUCCESS);
	TEXT(pci.busId, "00000001:E3:02.0");
	WANT(nvmlDeviceGetHandleByPciBusId_v2("00000001:E3:02.0", &found), NVML_SUCCESS);
	WANT(nvmlDeviceGetHandleByPciBusId_v2("0001:e3:02.1x", &found), NVML_SUCCESS); // as loose as sscanf
	WANT(nvmlDeviceGetHandleByPciBusId_v2("00000001:E4:02.0", &found), NVML_ERROR_NOT_FOUND);
}

static double millis(nvmlReturn_t (*call)(void)) {
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	WANT(call(), NVML_SUCCESS);
	clock_gettime(CLOCK_MONOTONIC, &b);
	return (b.tv_sec - a.tv_sec) * 1e3 + (b.tv_nsec - a.tv_nsec) / 1e6;
}

static nvmlReturn_t throughput(void) {
	unsigned int kb;
	return nvmlDeviceGetPcieThroughput(device(0), NVML_PCIE_UTIL_TX_BYTES, &kb);
}

void delays(void) {
	tell("init_ms 100\n");
	double took = millis(nvmlInit_v2);
	WANT(took >= 100, 1);
	tell("gpus 1\n");
	took = millis(throughput);
	WANT(took >= 20, 1);
}

static double nanos(nvmlDevice_t d) {
	enum { CALLS = 2000, ROUNDS = 50 };
	double best = 1e9;
	unsigned int mw;
	for (int i = 0; i < ROUNDS; i++) { // the best of them, since the machine has other work
		struct timespec a, b;
		clock_gettime(CLOCK_MONOTONIC, &a);
		for (int k = 0; k < CALLS; k++) nvmlDeviceGetPowerUsage(d, &mw);
		clock_gettime(CLOCK_MONOTONIC, &b);
		double took = ((b.tv_sec - a.tv_sec) * 1e9 + b.tv_nsec - a.tv_nsec) / CALLS;
		if (took < best) best = took;
	}
	return best;
}

// A benchmark with a call of 1 µs measures its caller, not this library.
void speed(void) {
	tell("gpus 8\n");
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	double plain = nanos(device(7));
	tell("gpus 8\ndelay_ns 1000\n");
	double slow = nanos(device(7));
	WANT(slow >= 1000 && slow > plain, 1); // how much more depends on the machine's other work
	printf("%.0f ns a call, %.0f ns where 1000 are asked for\n", plain, slow);
}

void leaks(void) {
	nvmlGpmSample_t s[3];
	nvmlEventSet_t set;
	nvmlDevice_t m;
	char text[96];
	tell("mig 1 on 1g.10gb:7:0\n");
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	WANT(nvmlInitWithFlags(0), NVML_SUCCESS);
	for (int i = 0; i < 3; i++) nvmlGpmSampleAlloc(&s[i]);
	nvmlGpmSampleFree(s[0]);
	nvmlEventSetCreate(&set);
	for (int i = 0; i < 5; i++) nvmlDeviceGetUUID(device(1), text, sizeof text);
	nvmlDeviceGetMigDeviceHandleByIndex(device(1), 0, &m);
	nvmlDeviceGetUUID(m, text, sizeof text);
}

void nonsense(void) {
	tell("gpus 2\nfrobnicate 7\n");
	nvmlInit_v2();
}

// boards prints for each GPU, one a board, which of these it does not support.
void boards(void) {
	nvmlEnableState_t on;
	nvmlUtilization_t u;
	nvmlGpuFabricInfo_t fabric;
	nvmlMarginTemperature_t margin = {.version = nvmlMarginTemperature_v1};
	nvmlGpmSupport_t gpm = {.version = NVML_GPM_SUPPORT_VERSION};
	nvmlEccSramErrorStatus_t sram = {.version = nvmlEccSramErrorStatus_v1};
	char text[96];
	unsigned int a, b, e, f;
	tell("gpus 10\nboard h200 0\nboard h100 1\nboard a100 2\nboard l40s 3\nboard rtx4080 4\n"
	     "board rtx2080 5\nboard b200 6\nboard gb200 7\nboard v100 8\nboard everything 9\n");
	WANT(nvmlInit_v2(), NVML_SUCCESS);
	for (unsigned int i = 0; i < 10; i++) {
		nvmlDevice_t d = device(i);
		nvmlFieldValue_t v[] = {{.fieldId = 82}, {.fieldId = 185}, {.fieldId = 194}, {.fieldId = 142}, {.fieldId = 274}, {.fieldId = 91}, {.fieldId = 29}};
		static const char *const names[] = {"memory-temperature", "average-power", "tlimit", "remap", "edpp", "nvlink", "retired"};
		WANT(nvmlDeviceGetName(d, text, sizeof text), NVML_SUCCESS);
		WANT(nvmlDeviceGetUtilizationRates(d, &u), NVML_SUCCESS);
		WANT(nvmlDeviceGetFieldValues(d, sizeof v / sizeof *v, v), NVML_SUCCESS);
		WANT(nvmlGpmQueryDeviceSupport(d, &gpm), NVML_SUCCESS);
		printf("%s:", text);
		if (nvmlDeviceGetSerial(d, text, sizeof text)) printf(" serial");
		if (nvmlDeviceGetEccMode(d, &on, &on)) printf(" ecc");
		if (nvmlDeviceGetSramEccErrorStatus(d, &sram)) printf(" sram");
		if (nvmlDeviceGetMarginTemperature(d, &margin)) printf(" margin");
		if (nvmlDeviceGetTemperatureThreshold(d, 1, &a)) printf(" threshold");
		if (nvmlDeviceGetGpuFabricInfo(d, &fabric)) printf(" fabric");
		if (nvmlDeviceGetMigMode(d, &a, &b)) printf(" mig");
		if (nvmlDeviceGetFanSpeed_v2(d, 0, &a)) printf(" fan");
		if (nvmlDeviceGetRemappedRows(d, &a, &b, &e, &f)) printf(" remapped-rows");
		if (!gpm.isSupportedDevice) printf(" gpm");
		for (size_t k = 0; k < sizeof v / sizeof *v; k++)
			if (v[k].nvmlReturn) printf(" %s", names[k]);
		printf("\n");
	}
}
