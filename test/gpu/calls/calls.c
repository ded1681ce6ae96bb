// Times the calls that the exporter makes of a device: a line each, of name, where it is made, return
// code, and the least, the median and the most microseconds of fifty. It declares what it needs of
// NVML itself, as machines with a driver need not have its header; CHECK_LAYOUT compares with that.
//
//	calls LIBRARY DEVICE FIELD,FIELD,… FIELD,FIELD,…    those of a device, and those of its links
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef CHECK_LAYOUT
#include <nvml.h>
#define IS(type, size) _Static_assert(sizeof(type) == (size), #type)
IS(nvmlSample_t, 16);
IS(nvmlProcessInfo_t, 24);
IS(nvmlProcessUtilizationSample_t, 32);
IS(nvmlDevice_t, sizeof(void *));
_Static_assert(NVML_FI_DEV_NVLINK_LINK_COUNT == 91, "links");
_Static_assert(NVML_VALUE_TYPE_UNSIGNED_INT == 1, "type");
_Static_assert(NVML_ERROR_NO_DATA == 21, "no data");
_Static_assert(NVML_ERROR_FUNCTION_NOT_FOUND == 13, "not found");
#endif

enum { CALLS = 50, MAX_FIELDS = 2048, SAMPLES = 4096, NO_DATA = 21, NOT_FOUND = 13, NVLINK_COUNT = 91 };
enum where { SCRAPE, BACKGROUND };

// What a call takes besides the device: a place for its answer, more of them, a number before it.
enum takes {
	OUT, OUT_OUT, OUT_OUT_OUT, NUMBER_OUT, STRUCT, ERRORS, FIELDS, LINK_FIELDS, SAMPLED, PROCESSES, USE,
	INSTANCE, OF_INSTANCE, GPU_INSTANCE, GPM, GPM_INSTANCE
};

struct field { // nvmlFieldValue_t
	unsigned int id, scope;
	long long timestamp, latency;
	unsigned int type, code;
	union {
		unsigned int number;
		unsigned long long wide;
	} value;
};

#ifdef CHECK_LAYOUT
IS(nvmlFieldValue_t, sizeof(struct field));
#endif

static const struct call {
	const char *name; // versions divided by bars, the best first
	enum where where;
	enum takes takes;
	unsigned int size, version; // of a STRUCT
} calls[] = {
	{"nvmlDeviceGetPowerUsage", SCRAPE, OUT},
	{"nvmlDeviceGetTotalEnergyConsumption", SCRAPE, OUT},
	{"nvmlDeviceGetTemperature", SCRAPE, NUMBER_OUT},
	{"nvmlDeviceGetTemperatureV", SCRAPE, STRUCT, 12, 1},
	{"nvmlDeviceGetTemperatureThreshold", SCRAPE, NUMBER_OUT},
	{"nvmlDeviceGetMarginTemperature", SCRAPE, STRUCT, 8, 1},
	{"nvmlDeviceGetMemoryInfo", SCRAPE, OUT},
	{"nvmlDeviceGetMemoryInfo_v2", SCRAPE, STRUCT, 40, 2},
	{"nvmlDeviceGetBAR1MemoryInfo", SCRAPE, OUT},
	{"nvmlDeviceGetConfComputeProtectedMemoryUsage", SCRAPE, OUT},
	{"nvmlDeviceGetClockInfo", SCRAPE, NUMBER_OUT},
	{"nvmlDeviceGetMaxClockInfo", SCRAPE, NUMBER_OUT},
	{"nvmlDeviceGetApplicationsClock", SCRAPE, NUMBER_OUT},
	{"nvmlDeviceGetUtilizationRates", SCRAPE, OUT},
	{"nvmlDeviceGetEncoderUtilization", SCRAPE, OUT_OUT},
	{"nvmlDeviceGetDecoderUtilization", SCRAPE, OUT_OUT},
	{"nvmlDeviceGetJpgUtilization", SCRAPE, OUT_OUT},
	{"nvmlDeviceGetOfaUtilization", SCRAPE, OUT_OUT},
	{"nvmlDeviceGetEncoderStats", SCRAPE, OUT_OUT_OUT},
	{"nvmlDeviceGetFBCStats", SCRAPE, OUT},
	{"nvmlDeviceGetSamples", SCRAPE, SAMPLED},
	{"nvmlDeviceGetCurrentClocksEventReasons", SCRAPE, OUT},
	{"nvmlDeviceGetCurrentClocksThrottleReasons", SCRAPE, OUT},
	{"nvmlDeviceGetFieldValues", SCRAPE, FIELDS},
	{"nvmlDeviceGetFieldValues", SCRAPE, LINK_FIELDS},
	{"nvmlDeviceGetPerformanceState", SCRAPE, OUT},
	{"nvmlDeviceGetPersistenceMode", SCRAPE, OUT},
	{"nvmlDeviceGetComputeMode", SCRAPE, OUT},
	{"nvmlDeviceGetDisplayActive", SCRAPE, OUT},
	{"nvmlDeviceGetAccountingMode", SCRAPE, OUT},
	{"nvmlDeviceGetMigMode", SCRAPE, OUT_OUT},
	{"nvmlDeviceGetMemoryErrorCounter", SCRAPE, ERRORS},
	{"nvmlDeviceGetSramEccErrorStatus", SCRAPE, STRUCT, 104, 1},
	{"nvmlDeviceGetRowRemapperHistogram", SCRAPE, OUT},
	{"nvmlDeviceGetRepairStatus", SCRAPE, STRUCT, 12, 1},
	{"nvmlDeviceGetUnrepairableMemoryFlag_v1", SCRAPE, OUT},
	{"nvmlDeviceGetNumFans", SCRAPE, OUT},
	{"nvmlDeviceGetFanSpeed_v2", SCRAPE, NUMBER_OUT},
	{"nvmlDeviceGetFanSpeedRPM", SCRAPE, STRUCT, 12, 1},
	{"nvmlDeviceGetCurrPcieLinkGeneration", SCRAPE, OUT},
	{"nvmlDeviceGetCurrPcieLinkWidth", SCRAPE, OUT},
	{"nvmlDeviceGetMaxPcieLinkGeneration", SCRAPE, OUT},
	{"nvmlDeviceGetMaxPcieLinkWidth", SCRAPE, OUT},
	{"nvmlDeviceGetPcieThroughput", BACKGROUND, NUMBER_OUT},
	{"nvmlDeviceGetNvLinkRemoteDeviceType", SCRAPE, NUMBER_OUT},
	{"nvmlDeviceGetGpuFabricInfoV", SCRAPE, STRUCT, 40, 3},
	{"nvmlDeviceGetGpuFabricInfo", SCRAPE, OUT},
	{"nvmlDeviceGetC2cModeInfoV", SCRAPE, OUT},
	{"nvmlDeviceGetMigDeviceHandleByIndex", SCRAPE, INSTANCE},
	{"nvmlDeviceGetAttributes_v2|nvmlDeviceGetAttributes", SCRAPE, OF_INSTANCE},
	{"nvmlDeviceGetGpuInstanceById", SCRAPE, GPU_INSTANCE},
	{"nvmlGpmSampleGet", BACKGROUND, GPM},
	{"nvmlGpmMigSampleGet", BACKGROUND, GPM_INSTANCE},
	{"nvmlDeviceGetComputeRunningProcesses_v3|nvmlDeviceGetComputeRunningProcesses_v2|nvmlDeviceGetComputeRunningProcesses", SCRAPE, PROCESSES},
	{"nvmlDeviceGetGraphicsRunningProcesses_v3|nvmlDeviceGetGraphicsRunningProcesses_v2|nvmlDeviceGetGraphicsRunningProcesses", SCRAPE, PROCESSES},
	{"nvmlDeviceGetMPSComputeRunningProcesses_v3|nvmlDeviceGetMPSComputeRunningProcesses_v2|nvmlDeviceGetMPSComputeRunningProcesses", SCRAPE, PROCESSES},
	{"nvmlDeviceGetProcessUtilization", SCRAPE, USE},
};

#ifdef CHECK_LAYOUT
_Static_assert(nvmlTemperature_v1 == (12 | 1u << 24), "temperature");
_Static_assert(nvmlMarginTemperature_v1 == (8 | 1u << 24), "margin");
_Static_assert(nvmlMemory_v2 == (40 | 2u << 24), "memory");
_Static_assert(nvmlEccSramErrorStatus_v1 == (104 | 1u << 24), "sram");
_Static_assert(nvmlRepairStatus_v1 == (12 | 1u << 24), "repair");
_Static_assert(nvmlFanSpeedInfo_v1 == (12 | 1u << 24), "fan");
_Static_assert(nvmlGpuFabricInfo_v3 == (40 | 3u << 24), "fabric");
#endif

typedef int (*function)(); // each is called with what its own declaration takes

static void *library, *device, *instance, *gpm;
static unsigned int gpu_instance;
static struct field fields[2][MAX_FIELDS];
static int asked[2];
static unsigned long long room[3][SAMPLES * 4]; // for any answer

// first is the first of the versions that the driver has, or would like to have.
static const char *first(const char *names) {
	static char all[256];
	char *rest = all, *one;
	snprintf(all, sizeof all, "%s", names);
	while ((one = strsep(&rest, "|")))
		if (dlsym(library, one)) return one;
	return all;
}

static function find(const char *names) { return (function)dlsym(library, first(names)); }

// need calls a function no driver lacks.
static function need(const char *name) {
	function f = find(name);
	if (f) return f;
	fprintf(stderr, "calls: the library has no %s\n", name);
	exit(1);
}

static int samples(function f) {
	unsigned int kind, n = 0;
	int code = f(device, 1, 0ull, &kind, &n, NULL); // of the GPU's utilization; how many there are
	if (n > SAMPLES) n = SAMPLES;
	return code ? code : f(device, 1, 0ull, &kind, &n, room[0]);
}

static int values(function f, int links) {
	for (int i = 0; i < asked[links]; i++) fields[links][i].code = NO_DATA;
	return asked[links] ? f(device, asked[links], fields[links]) : NO_DATA;
}

static int make(const struct call *c, function f) {
	unsigned int n = SAMPLES;
	void *found = NULL;
	switch (c->takes) {
	case OUT: return f(device, room[0]);
	case OUT_OUT: return f(device, room[0], room[1]);
	case OUT_OUT_OUT: return f(device, room[0], room[1], room[2]);
	case NUMBER_OUT: return f(device, 0, room[0]);
	case STRUCT:
		n = c->size | c->version << 24;
		memset(room[0], 0, c->size);
		memcpy(room[0], &n, sizeof n);
		return f(device, room[0]);
	case ERRORS: return f(device, 0, 0, 2, room[0]); // corrected, since the driver was loaded, in DRAM
	case FIELDS: return values(f, 0);
	case LINK_FIELDS: return values(f, 1);
	case SAMPLED: return samples(f);
	case PROCESSES: return f(device, &n, room[0]);
	case USE: return f(device, room[0], &n, 0ull);
	case INSTANCE: return f(device, 0, &found);
	case OF_INSTANCE: return f(instance ? instance : device, room[0]);
	case GPU_INSTANCE: return f(device, gpu_instance, &found);
	case GPM: return gpm ? f(device, gpm) : NO_DATA;
	case GPM_INSTANCE: return gpm ? f(device, gpu_instance, gpm) : NO_DATA;
	}
	return NO_DATA;
}

static double micros(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static void measure(const struct call *c) {
	double took[CALLS];
	function f = find(c->name);
	int code = NOT_FOUND;
	for (int i = 0; i < CALLS; i++) {
		double start = micros();
		if (f) code = make(c, f);
		took[i] = micros() - start;
	}
	qsort(took, CALLS, sizeof *took, by_size);
	printf("%s%s\t%s\t%d\t%.1f\t%.1f\t%.1f\n", first(c->name), c->takes == LINK_FIELDS ? " of links" : "",
	       c->where == SCRAPE ? "scrape" : "background", code, took[0], took[CALLS / 2], took[CALLS - 1]);
}

static void ask_for(int links, unsigned int id, unsigned int scope) {
	if (asked[links] < MAX_FIELDS) fields[links][asked[links]++] = (struct field){.id = id, .scope = scope};
}

// list takes the numbers of fields from a word.
static void list(int links, char *word, unsigned int scopes) {
	for (char *one; (one = strsep(&word, ","));)
		for (unsigned int scope = 0; *one && scope < scopes; scope++) ask_for(links, strtoul(one, NULL, 10), scope);
}

static unsigned int nvlinks(void) {
	struct field f = {.id = NVLINK_COUNT, .code = NO_DATA};
	return need("nvmlDeviceGetFieldValues")(device, 1, &f) || f.code || f.value.number > 64 ? 0 : f.value.number;
}

// partitions finds a MIG instance to ask, and memory for the profiler's counters.
static void partitions(void) {
	function at = find("nvmlDeviceGetMigDeviceHandleByIndex"), id = find("nvmlDeviceGetGpuInstanceId"), alloc = find("nvmlGpmSampleAlloc");
	for (unsigned int i = 0; at && id && !instance && i < 16; i++)
		if (at(device, i, &instance) || id(instance, &gpu_instance)) instance = NULL;
	if (alloc && alloc(&gpm)) gpm = NULL;
}

int main(int argc, char **argv) {
	if (argc != 5) {
		fprintf(stderr, "calls: LIBRARY DEVICE FIELDS LINKFIELDS\n");
		return 2;
	}
	library = dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL);
	if (!library && !strchr(argv[1], '/')) { // containers keep it where the loader does not look
		char path[256];
		snprintf(path, sizeof path, "/usr/local/nvidia/lib64/%s", argv[1]);
		library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	}
	if (!library) {
		fprintf(stderr, "calls: %s\n", dlerror());
		return 1;
	}
	double start = micros();
	int code = need("nvmlInit_v2")();
	if (!code) code = need("nvmlDeviceGetHandleByIndex_v2")(atoi(argv[2]), &device);
	double took = micros() - start;
	printf("nvmlInit_v2\tstart\t%d\t%.1f\t%.1f\t%.1f\n", code, took, took, took);
	if (code) return 1;
	partitions();
	list(0, argv[3], 1);
	list(1, argv[4], nvlinks());
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) measure(&calls[i]);
	if (gpm) need("nvmlGpmSampleFree")(gpm);
	return need("nvmlShutdown")();
}
