// A stand-in for nvidia-smi: it reads a libnvidia-ml by itself and prints what it finds as nvidia-smi
// 580 does, in XML for -q -x and in CSV for --query-gpu and --query-compute-apps.
#define _GNU_SOURCE
#include "smi.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXTS = 600, MAX_PATH = 160, MAX_TEXT = 128 };

static struct {
	char path[MAX_PATH], text[MAX_TEXT];
} texts[MAX_TEXTS];
static int n;
static void *library;

static nvmlReturn_t lacking(void) { return NVML_ERROR_FUNCTION_NOT_FOUND; }

void *find(const char *name) {
	void *f = dlsym(library, name);
	return f ? f : (void *)lacking;
}

const char *yes(unsigned int x) { return x ? "Yes" : "No"; }
const char *enabled(unsigned int x) { return x ? "Enabled" : "Disabled"; }
unsigned long long mib(unsigned long long bytes) { return (bytes + (1 << 20) - 1) >> 20; }

void say(const char *path, nvmlReturn_t code, const char *format, ...) {
	if (n == MAX_TEXTS) exit(3);
	snprintf(texts[n].path, MAX_PATH, "%s", path);
	char *text = texts[n++].text;
	va_list args;
	va_start(args, format);
	if (code == NVML_SUCCESS) vsnprintf(text, MAX_TEXT, format, args);
	else if (code == NVML_ERROR_NO_PERMISSION) strcpy(text, "Insufficient Permissions");
	else if (code == NVML_ERROR_DEPRECATED) strcpy(text, "Requested functionality has been deprecated");
	else if (code == NVML_ERROR_GPU_IS_LOST) strcpy(text, "GPU is lost");
	else strcpy(text, "N/A");
	va_end(args);
}

const char *said(const char *path) {
	for (int i = 0; i < n; i++)
		if (!strcmp(texts[i].path, path)) return texts[i].text;
	return NULL;
}

// folder is how much of two paths is the same, up to and with a slash.
static size_t folder(const char *a, const char *b) {
	size_t same = 0;
	for (size_t i = 0; a[i] && a[i] == b[i]; i++)
		if (a[i] == '/') same = i + 1;
	return same;
}

// tag prints the name at a place of a path; a # and a number, which tell it from others, are left out.
static void tag(const char *slash, const char *name) { printf("<%s%.*s>", slash, (int)strcspn(name, "/#"), name); }

// leave closes the elements of a path beyond a length, the innermost first.
static void leave(const char *path, size_t kept) {
	for (size_t end = strlen(path); end > kept; end--) {
		if (path[end - 1] != '/') continue;
		size_t name = end - 1;
		while (name > kept && path[name - 1] != '/') name--;
		tag("/", path + name);
	}
}

static void print_xml(void) {
	const char *before = "";
	for (int i = 0; i < n; i++) {
		const char *path = texts[i].path, *slash;
		if (!strncmp(path, "csv/", 4)) continue;
		const size_t same = folder(before, path);
		leave(before, same);
		for (path += same; (slash = strchr(path, '/')); path = slash + 1) tag("", path);
		tag("", path);
		printf("%s", texts[i].text);
		tag("/", path);
		putchar('\n');
		before = texts[i].path;
	}
	leave(before, 0);
}

// Where --query-gpu takes what the elements tell too. Other answers are told under csv/ and the name
// of the field, with slashes for its dots.
static const struct {
	const char *field, *path;
} fields[] = {
	{"name", "product_name"}, {"pci.bus_id", "pci/pci_bus_id"}, {"inforom.img", "inforom_version/img_version"},
	{"inforom.oem", "inforom_version/oem_object"}, {"inforom.ecc", "inforom_version/ecc_object"}, {"inforom.pwr", "inforom_version/pwr_object"},
	{"accounting.mode", "accounting_mode"}, {"pstate", "performance_state"}, {"c2c.mode", "c2c_mode"}, {"fan.speed", "fan_speed"},
	{"mig.mode.current", "mig_mode/current_mig"}, {"mig.mode.pending", "mig_mode/pending_mig"}, {"ecc.mode.current", "ecc_mode/current_ecc"},
	{"ecc.mode.pending", "ecc_mode/pending_ecc"}, {"memory.total", "fb_memory_usage/total"}, {"memory.reserved", "fb_memory_usage/reserved"},
	{"memory.used", "fb_memory_usage/used"}, {"memory.free", "fb_memory_usage/free"}, {"utilization.gpu", "utilization/gpu_util"},
	{"utilization.memory", "utilization/memory_util"}, {"utilization.encoder", "utilization/encoder_util"},
	{"utilization.decoder", "utilization/decoder_util"}, {"utilization.jpeg", "utilization/jpeg_util"}, {"utilization.ofa", "utilization/ofa_util"},
	{"encoder.stats.sessionCount", "encoder_stats/session_count"}, {"encoder.stats.averageFps", "encoder_stats/average_fps"},
	{"encoder.stats.averageLatency", "encoder_stats/average_latency"}, {"temperature.gpu.tlimit", "temperature/gpu_temp_tlimit"},
	{"power.draw.instant", "gpu_power_readings/instant_power_draw"}, {"clocks.current.graphics", "clocks/graphics_clock"},
	{"clocks.current.sm", "clocks/sm_clock"}, {"clocks.current.memory", "clocks/mem_clock"}, {"clocks.current.video", "clocks/video_clock"},
	{"clocks.max.graphics", "max_clocks/graphics_clock"}, {"clocks.max.sm", "max_clocks/sm_clock"}, {"clocks.max.memory", "max_clocks/mem_clock"},
	{"clocks.applications.graphics", "applications_clocks/graphics_clock"}, {"clocks.applications.memory", "applications_clocks/mem_clock"},
	{"fabric.state", "fabric/state"}, {"fabric.status", "fabric/status"}, {"fabric.cliqueId", "fabric/cliqueId"},
	{"fabric.clusterUuid", "fabric/clusterUuid"}, {"platform.module_id", "platformInfo/module_id"},
	{"module.power.draw.instant", "module_power_readings/instant_power_draw"}, {"module.power.draw.average", "module_power_readings/average_power_draw"}, {"protected_memory.total", "cc_protected_memory_usage/total"},
	{"protected_memory.used", "cc_protected_memory_usage/used"}, {"pcie.link.gen.current", "pci/pci_gpu_link_info/pcie_gen/current_link_gen"},
	{"pcie.link.gen.max", "pci/pci_gpu_link_info/pcie_gen/max_link_gen"},
	{"pcie.link.width.current", "pci/pci_gpu_link_info/link_widths/current_link_width"},
	{"pcie.link.width.max", "pci/pci_gpu_link_info/link_widths/max_link_width"},
	{"retired_pages.single_bit_ecc.count", "retired_pages/multiple_single_bit_retirement/retired_count"},
	{"retired_pages.double_bit.count", "retired_pages/double_bit_retirement/retired_count"},
	{"retired_pages.pending", "retired_pages/pending_retirement"},
};

// answer is what is told of a field, or NULL where nobody knows it.
static const char *answer(const char *field) {
	char path[MAX_PATH];
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (!strcmp(fields[i].field, field)) return said(fields[i].path) ? said(fields[i].path) : "N/A";
	if (said(field)) return said(field);
	snprintf(path, sizeof path, "csv/%s", field);
	for (char *dot; (dot = strchr(path, '.'));) *dot = '/';
	return said(path);
}

// named is what nvidia-smi of R535 to R555 prints before the value of a field: names of the fabric's.
static const char *named(const char *field) {
	return !strcmp(field, "fabric.state") ? "state  " : !strcmp(field, "fabric.status") ? "status " : "";
}

// print_csv prints a line, or refuses the first field that nobody knows.
static void print_csv(const char *wanted) {
	char line[16384] = "", list[8192], *rest = list, *one;
	snprintf(list, sizeof list, "%s", wanted);
	while ((one = strsep(&rest, ","))) {
		const char *text = answer(one);
		if (!text) {
			printf("Field \"%s\" is not a valid field to query.\n\n", one);
			exit(2);
		}
		const char *before = driver() >= 535 && driver() < 560 ? named(one) : "";
		snprintf(line + strlen(line), sizeof line - strlen(line), "%s%s%s", *line ? ", " : "", before, strcmp(text, "N/A") ? text : "[N/A]");
	}
	puts(line);
}

static void print_apps(const char *uuid) {
	for (int i = 0; i < n; i++) {
		int pid;
		if (strncmp(texts[i].path, "processes/", 10) || sscanf(texts[i].text, "%d", &pid) != 1 || !strstr(texts[i].path, "/pid")) continue;
		if (strcmp(texts[i + 1].text, "C")) continue;
		printf("%s, %d, %s\n", uuid, pid, texts[i + 3].text);
	}
}

static const char *after(int argc, char **argv, const char *prefix) {
	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], prefix, strlen(prefix))) return argv[i] + strlen(prefix);
	return NULL;
}

int main(int argc, char **argv) {
	const char *fields_wanted = after(argc, argv, "--query-gpu="), *apps = after(argc, argv, "--query-compute-apps=");
	const int xml = after(argc, argv, "-q") && after(argc, argv, "-x");
	char driver[96] = "", cuda[16] = "N/A";
	unsigned int count = 0;
	int version;
	library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (!library || CALL(nvmlInit_v2) != NVML_SUCCESS || CALL(nvmlDeviceGetCount_v2, &count) != NVML_SUCCESS || !(xml || fields_wanted || apps)) {
		printf("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n");
		return 9;
	}
	CALL(nvmlSystemGetDriverVersion, driver, sizeof driver);
	if (CALL(nvmlSystemGetCudaDriverVersion, &version) == NVML_SUCCESS) snprintf(cuda, sizeof cuda, "%d.%d", version / 1000, version % 1000 / 10);
	if (xml)
		printf("<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v13.dtd\">\n<nvidia_smi_log>\n"
		       "<driver_version>%s</driver_version>\n<!-- a comment, as the newest have -->\n<cuda_version>%s</cuda_version>\n", driver, cuda);
	for (unsigned int i = 0; i < count; i++) {
		nvmlDevice_t d;
		if (CALL(nvmlDeviceGetHandleByIndex_v2, i, &d) != NVML_SUCCESS) continue;
		n = 0;
		tell_board(d, i);
		say("csv/driver_version", NVML_SUCCESS, "%s", driver);
		tell_instances(d);
		tell_state(d);
		tell_processes(d);
		if (xml) {
			printf("<gpu id=\"%s\">\n", said("pci/pci_bus_id"));
			print_xml();
			printf("</gpu>\n");
		} else if (fields_wanted) print_csv(fields_wanted);
		else print_apps(said("uuid"));
	}
	if (xml) printf("</nvidia_smi_log>\n");
	CALL(nvmlShutdown);
	return 0;
}
