// What a board measures and counts.
#include "smi.h"

#include <stdio.h>

#define NUMBER(path, format, scale, name, ...) \
	do { \
		unsigned int out = 0; \
		nvmlReturn_t code = CALL(name, d, ##__VA_ARGS__, (void *)&out); \
		say(path, code, format, (scale) * out); \
	} while (0)

static nvmlFieldValue_t field(nvmlDevice_t d, unsigned int id, unsigned int scope) {
	nvmlFieldValue_t v = {.fieldId = id, .scopeId = scope};
	nvmlReturn_t code = CALL(nvmlDeviceGetFieldValues, d, 1, &v);
	if (code) v.nvmlReturn = code;
	return v;
}

// Counts are 32 or 64 bits wide.
static unsigned long long count(const nvmlFieldValue_t *v) {
	return v->valueType == NVML_VALUE_TYPE_UNSIGNED_INT ? v->value.uiVal : v->value.ullVal;
}

static void counted(const char *path, nvmlDevice_t d, unsigned int id, const char *format, unsigned int divisor) {
	nvmlFieldValue_t v = field(d, id, 0);
	say(path, v.nvmlReturn, format, count(&v) / divisor);
}

static void memory(nvmlDevice_t d) {
	nvmlMemory_v2_t m = {.version = nvmlMemory_v2};
	nvmlMemory_t before = {0}, protected = {0};
	nvmlBAR1Memory_t bar = {0};
	nvmlReturn_t code = CALL(nvmlDeviceGetMemoryInfo_v2, d, &m);
	if (code == NVML_ERROR_FUNCTION_NOT_FOUND) {
		code = CALL(nvmlDeviceGetMemoryInfo, d, &before);
		m = (nvmlMemory_v2_t){.total = before.total, .used = before.used, .free = before.free};
	} else say("fb_memory_usage/reserved", code, "%llu MiB", mib(m.reserved));
	say("fb_memory_usage/total", code, "%llu MiB", mib(m.total));
	say("fb_memory_usage/used", code, "%llu MiB", mib(m.used));
	say("fb_memory_usage/free", code, "%llu MiB", mib(m.free));
	code = CALL(nvmlDeviceGetBAR1MemoryInfo, d, &bar);
	say("bar1_memory_usage/total", code, "%llu MiB", mib(bar.bar1Total));
	say("bar1_memory_usage/used", code, "%llu MiB", mib(bar.bar1Used));
	code = CALL(nvmlDeviceGetConfComputeProtectedMemoryUsage, d, &protected);
	say("cc_protected_memory_usage/total", code, "%llu MiB", mib(protected.total));
	say("cc_protected_memory_usage/used", code, "%llu MiB", mib(protected.used));
}

// driver is the first number of its version: elements have got other names in time.
int driver(void) {
	char version[96];
	int major = 0;
	if (!CALL(nvmlSystemGetDriverVersion, version, sizeof version)) sscanf(version, "%d", &major);
	return major;
}

static void reasons(nvmlDevice_t d) {
	static const struct {
		unsigned long long bit;
		const char *name;
	} bits[] = {
		{nvmlClocksEventReasonGpuIdle, "gpu_idle"}, {nvmlClocksEventReasonApplicationsClocksSetting, "applications_clocks_setting"},
		{nvmlClocksEventReasonSwPowerCap, "sw_power_cap"}, {nvmlClocksThrottleReasonHwSlowdown, "hw_slowdown"},
		{nvmlClocksThrottleReasonHwThermalSlowdown, "hw_thermal_slowdown"}, {nvmlClocksThrottleReasonHwPowerBrakeSlowdown, "hw_power_brake_slowdown"},
		{nvmlClocksEventReasonSyncBoost, "sync_boost"}, {nvmlClocksEventReasonSwThermalSlowdown, "sw_thermal_slowdown"},
		{nvmlClocksEventReasonDisplayClockSetting, "display_clocks_setting"},
	};
	unsigned long long now = 0;
	nvmlReturn_t code = CALL(nvmlDeviceGetCurrentClocksThrottleReasons, d, &now);
	const char *name = driver() < 535 ? "throttle" : "event";
	for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
		char path[96];
		snprintf(path, sizeof path, "clocks_%s_reasons/clocks_%s_reason_%s", name, name, bits[i].name);
		say(path, code, "%s", now & bits[i].bit ? "Active" : "Not Active");
		snprintf(path, sizeof path, "csv/clocks_%s_reasons/%s", name, bits[i].name);
		say(path, code, "%s", now & bits[i].bit ? "Active" : "Not Active");
	}
#define COUNTER(name, csv, id) \
	do { \
		counted("clocks_event_reasons_counters/clocks_event_reasons_counters_" name, d, id, "%llu us", 1000); \
		counted("csv/clocks_event_reasons_counters/" csv, d, id, "%llu us", 1000); \
	} while (0)
	if (driver() < 575) return; // nvidia-smi has no such element
	COUNTER("sw_power_cap", "sw_power_cap", 74);
	COUNTER("sync_boost", "sync_boost", 76);
	COUNTER("sw_therm_slowdown", "sw_thermal_slowdown", driver() < 590 ? 251 : 269);
	COUNTER("hw_therm_slowdown", "hw_thermal_slowdown", driver() < 590 ? 252 : 270);
	COUNTER("hw_power_brake", "hw_power_brake_slowdown", driver() < 590 ? 253 : 271);
}

// The places of errors as the driver numbers them.
static const char *const places[] = {"l1_cache", "l2_cache", "device_memory", "register_file", "texture_memory", "texture_shm", "cbu", "sram"};
enum { DEVICE_MEMORY = 2, CBU = 6, SRAM };

// located tells the errors of one span and sort by where they were. From Turing on the elements have
// two places only, and before one more for the sum; the fields have all.
static void located(nvmlDevice_t d, int aggregate, int uncorrected, int modern, int detailed) {
	const char *span = aggregate ? "aggregate" : "volatile", *sort = uncorrected ? "uncorrected" : "corrected";
	unsigned long long n = 0;
	char path[96], element[64];
	for (int place = 0; place <= SRAM; place++) {
		nvmlReturn_t code = CALL(nvmlDeviceGetMemoryErrorCounter, d, uncorrected, aggregate, place, &n);
		snprintf(path, sizeof path, "csv/ecc/errors/%s/%s/%s", sort, span, place == DEVICE_MEMORY ? "dram" : places[place]);
		say(path, code, "%llu", n);
		if (modern) snprintf(element, sizeof element, "%s_%sable", place == SRAM ? "sram" : "dram", uncorrected ? "uncorrect" : "correct");
		else snprintf(element, sizeof element, "%s_bit/%s", uncorrected ? "double" : "single", places[place]);
		snprintf(path, sizeof path, "ecc_errors/%s/%s", span, element);
		if (modern ? place == DEVICE_MEMORY || (place == SRAM && !(uncorrected && detailed)) : place <= CBU) say(path, code, "%llu", n);
	}
	nvmlReturn_t code = CALL(nvmlDeviceGetTotalEccErrors, d, uncorrected, aggregate, &n);
	snprintf(path, sizeof path, "ecc_errors/%s/%s_bit/total", span, uncorrected ? "double" : "single");
	if (!modern) say(path, code, "%llu", n);
	snprintf(path, sizeof path, "csv/ecc/errors/%s/%s/total", sort, span);
	say(path, code, "%llu", n);
}

// chip tells one of the errors of the memory on the chip, as an element and as a field.
static void chip(const char *element, const char *field, nvmlReturn_t code, unsigned long long n) {
	char path[96];
	snprintf(path, sizeof path, "ecc_errors/%s", element);
	if (!code) say(path, code, "%llu", n);
	snprintf(path, sizeof path, "csv/ecc/errors/uncorrected/%s", field);
	say(path, code, "%llu", n);
}

static void errors(nvmlDevice_t d) {
	nvmlEccSramErrorStatus_t s = {.version = nvmlEccSramErrorStatus_v1};
	nvmlReturn_t code = CALL(nvmlDeviceGetSramEccErrorStatus, d, &s);
	unsigned int arch = 0;
	CALL(nvmlDeviceGetArchitecture, d, &arch);
	for (int aggregate = 0; aggregate < 2; aggregate++)
		for (int uncorrected = 0; uncorrected < 2; uncorrected++)
			located(d, aggregate, uncorrected, arch >= NVML_DEVICE_ARCH_TURING, !code);
	chip("volatile/sram_uncorrectable_parity", "volatile/sram/parity", code, s.volatileUncParity);
	chip("volatile/sram_uncorrectable_secded", "volatile/sram/secded", code, s.volatileUncSecDed);
	chip("aggregate/sram_uncorrectable_parity", "aggregate/sram/parity", code, s.aggregateUncParity);
	chip("aggregate/sram_uncorrectable_secded", "aggregate/sram/secded", code, s.aggregateUncSecDed);
	if (!code) say("ecc_errors/aggregate/sram_threshold_exceeded", code, "%s", yes(s.bThresholdExceeded));
	say("csv/ecc/errors/uncorrected/aggregate/sram/thresholdExceeded", code, "%s", yes(s.bThresholdExceeded));
	chip("aggregate_uncorrectable_sram_sources/sram_l2", "aggregate/sram/l2", code, s.aggregateUncBucketL2);
	chip("aggregate_uncorrectable_sram_sources/sram_sm", "aggregate/sram/sm", code, s.aggregateUncBucketSm);
	chip("aggregate_uncorrectable_sram_sources/sram_microcontroller", "aggregate/sram/mcu", code, s.aggregateUncBucketMcu);
	chip("aggregate_uncorrectable_sram_sources/sram_pcie", "aggregate/sram/pcie", code, s.aggregateUncBucketPcie);
	chip("aggregate_uncorrectable_sram_sources/sram_other", "aggregate/sram/other", code, s.aggregateUncBucketOther);
	nvmlRepairStatus_t repair = {.version = nvmlRepairStatus_v1};
	nvmlUnrepairableMemoryStatus_v1_t bad = {0};
	code = CALL(nvmlDeviceGetRepairStatus, d, &repair);
	say("ecc_errors/channel_repair_pending", code, "%s", yes(repair.bChannelRepairPending));
	say("ecc_errors/tpc_repair_pending", code, "%s", yes(repair.bTpcRepairPending));
	code = CALL(nvmlDeviceGetUnrepairableMemoryFlag_v1, d, &bad);
	say("ecc_errors/unrepairable_memory", code, "%s", yes(bad.bUnrepairableMemory));
}

// spares are the banks by how many spare rows they have left. CSV tells them under MIG too, the
// elements need not be there.
static void spares(nvmlDevice_t d, int elements) {
	nvmlRowRemapperHistogramValues_t b = {0};
	nvmlReturn_t code = CALL(nvmlDeviceGetRowRemapperHistogram, d, &b);
	const struct {
		const char *name;
		unsigned int n;
	} left[] = {{"max", b.max}, {"high", b.high}, {"partial", b.partial}, {"low", b.low}, {"none", b.none}};
	char path[96];
	for (int i = 0; i < 5; i++) {
		snprintf(path, sizeof path, "csv/remapped_rows/histogram/%s", left[i].name);
		say(path, code, "%u", left[i].n);
		snprintf(path, sizeof path, "remapped_rows/row_remapper_histogram/row_remapper_histogram_%s", left[i].name);
		if (elements && !code) say(path, code, "%u bank(s)", left[i].n);
	}
	if (elements && code) say("remapped_rows/row_remapper_histogram", code, " ");
}

static void repairs(nvmlDevice_t d) {
	static const char *const actions[] = {"None", "Reset", "Reboot", "Drain P2P", "Drain and Reset"};
	unsigned int corrected = 0, uncorrected = 0, pending = 0, failed = 0;
	nvmlFieldValue_t v = field(d, NVML_FI_DEV_RETIRED_PENDING, 0);
	counted("retired_pages/multiple_single_bit_retirement/retired_count", d, NVML_FI_DEV_RETIRED_SBE, "%llu", 1);
	counted("retired_pages/double_bit_retirement/retired_count", d, NVML_FI_DEV_RETIRED_DBE, "%llu", 1);
	say("retired_pages/pending_retirement", v.nvmlReturn, "%s", yes(v.value.uiVal));
	nvmlReturn_t code = CALL(nvmlDeviceGetRemappedRows, d, &corrected, &uncorrected, &pending, &failed);
	nvmlRemappedRowsInfo_v2_t rows = {0};
	nvmlReturn_t inactive = CALL(nvmlDeviceGetRemappedRows_v2, d, &rows);
	if (code) say("remapped_rows", code, " ");
	else {
		say("remapped_rows/remapped_row_corr", code, "%u", corrected);
		say("remapped_rows/remapped_row_unc", code, "%u", uncorrected);
		if (inactive != NVML_ERROR_FUNCTION_NOT_FOUND) {
			say("remapped_rows/remapped_row_corr_inactive", inactive, "%u", rows.corrInactiveRemaps);
			say("remapped_rows/remapped_row_unc_inactive", inactive, "%u", rows.uncInactiveRemaps);
		}
		say("remapped_rows/remapped_row_pending", code, "%s", yes(pending));
		say("remapped_rows/remapped_row_failure", code, "%s", yes(failed));
	}
	say("csv/remapped_rows/correctable", code, "%u", corrected);
	say("csv/remapped_rows/uncorrectable", code, "%u", uncorrected);
	say("csv/remapped_rows/correctable_inactive", inactive, "%u", rows.corrInactiveRemaps);
	say("csv/remapped_rows/uncorrectable_inactive", inactive, "%u", rows.uncInactiveRemaps);
	say("csv/remapped_rows/pending", code, "%s", yes(pending));
	say("csv/remapped_rows/failure", code, "%s", yes(failed));
	spares(d, !code);
	v = field(d, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 0);
	say("gpu_recovery_action", v.nvmlReturn, "%s", actions[v.nvmlReturn ? 0 : v.value.uiVal % 5]);
}

static void heat(nvmlDevice_t d) {
	NUMBER("temperature/gpu_temp", "%u C", 1, nvmlDeviceGetTemperature, NVML_TEMPERATURE_GPU);
	NUMBER("csv/temperature/gpu", "%u", 1, nvmlDeviceGetTemperature, NVML_TEMPERATURE_GPU);
	nvmlMarginTemperature_t margin = {.version = nvmlMarginTemperature_v1};
	nvmlReturn_t code = CALL(nvmlDeviceGetMarginTemperature, d, &margin);
	say("temperature/gpu_temp_tlimit", code, "%d C", margin.marginTemperature);
	static const struct {
		const char *path, *offset;
		unsigned int limit, id;
	} limits[] = {
		{"temperature/gpu_temp_max_threshold", "temperature/gpu_temp_max_tlimit_threshold", 0, 193},
		{"temperature/gpu_temp_slow_threshold", "temperature/gpu_temp_slow_tlimit_threshold", 1, 194},
		{"temperature/gpu_temp_max_gpu_threshold", "temperature/gpu_temp_max_gpu_tlimit_threshold", 3, 196},
		{"temperature/gpu_temp_max_mem_threshold", "temperature/gpu_temp_max_mem_tlimit_threshold", 2, 195},
	};
	for (int i = 0; i < 4; i++) {
		nvmlFieldValue_t v = field(d, limits[i].id, 0);
		unsigned int n = 0;
		code = CALL(nvmlDeviceGetTemperatureThreshold, d, limits[i].limit, &n);
		if (v.nvmlReturn == NVML_SUCCESS) say(limits[i].offset, NVML_SUCCESS, "%d C", v.value.siVal);
		if (v.nvmlReturn || !code) say(limits[i].path, code, "%u C", n);
	}
	nvmlFieldValue_t v = field(d, NVML_FI_DEV_MEMORY_TEMP, 0);
	say("temperature/memory_temp", v.nvmlReturn, "%u C", v.value.uiVal);
	say("csv/temperature/memory", v.nvmlReturn, "%u", v.value.uiVal);
}

static void watts(const char *path, nvmlFieldValue_t v) { say(path, v.nvmlReturn, "%.2f W", v.value.uiVal / 1000.); }

// limit tells one in the power readings, and in CSV.
static void limit(const char *within, const char *name, const char *csv, nvmlReturn_t code, unsigned int milliwatts) {
	char path[96];
	snprintf(path, sizeof path, "%s/%s", within, name);
	say(path, code, "%.2f W", milliwatts / 1000.);
	snprintf(path, sizeof path, "csv/%s", csv);
	say(path, code, "%.2f W", milliwatts / 1000.);
}

// Before R535 nvidia-smi had one draw, and other names.
static void power(nvmlDevice_t d) {
	const int old = driver() < 535;
	const char *within = old ? "power_readings" : "gpu_power_readings";
	unsigned int n = 0, max = 0;
	if (old) NUMBER("power_readings/power_draw", "%.2f W", .001, nvmlDeviceGetPowerUsage);
	else {
		watts("gpu_power_readings/average_power_draw", field(d, NVML_FI_DEV_POWER_AVERAGE, 0));
		watts("gpu_power_readings/instant_power_draw", field(d, NVML_FI_DEV_POWER_INSTANT, 0));
	}
	NUMBER("csv/power/draw", "%.2f W", .001, nvmlDeviceGetPowerUsage);
	nvmlReturn_t code = CALL(nvmlDeviceGetEnforcedPowerLimit, d, &n);
	limit(within, old ? "enforced_power_limit" : "current_power_limit", "enforced/power/limit", code, n);
	code = CALL(nvmlDeviceGetPowerManagementLimit, d, &n);
	limit(within, old ? "power_limit" : "requested_power_limit", "power/limit", code, n);
	code = CALL(nvmlDeviceGetPowerManagementDefaultLimit, d, &n);
	limit(within, "default_power_limit", "power/default_limit", code, n);
	code = CALL(nvmlDeviceGetPowerManagementLimitConstraints, d, &n, &max);
	limit(within, "min_power_limit", "power/min_limit", code, n);
	limit(within, "max_power_limit", "power/max_limit", code, max);
	if (old) return;
	watts("gpu_memory_power_readings/instant_power_draw", field(d, NVML_FI_DEV_POWER_INSTANT, 2));
	watts("gpu_memory_power_readings/average_power_draw", field(d, NVML_FI_DEV_POWER_AVERAGE, 2));
	watts("module_power_readings/average_power_draw", field(d, NVML_FI_DEV_POWER_AVERAGE, 1));
	watts("module_power_readings/instant_power_draw", field(d, NVML_FI_DEV_POWER_INSTANT, 1));
	if (driver() < 590) return;
	nvmlFieldValue_t v = field(d, 274, 0);
	say("edpp_multiplier", v.nvmlReturn, "%.2f%%", (double)v.value.uiVal);
	say("csv/edpp_multiplier", v.nvmlReturn, "%.2f %%", (double)v.value.uiVal);
}

static void clocks(nvmlDevice_t d) {
	static const char *const names[] = {"graphics", "sm", "mem", "video"};
	char path[64];
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof path, "clocks/%s_clock", names[i]);
		NUMBER(path, "%u MHz", 1, nvmlDeviceGetClockInfo, i);
	}
	NUMBER("applications_clocks/graphics_clock", "%u MHz", 1, nvmlDeviceGetApplicationsClock, NVML_CLOCK_GRAPHICS);
	NUMBER("applications_clocks/mem_clock", "%u MHz", 1, nvmlDeviceGetApplicationsClock, NVML_CLOCK_MEM);
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof path, "max_clocks/%s_clock", names[i]);
		NUMBER(path, "%u MHz", 1, nvmlDeviceGetMaxClockInfo, i);
	}
}

#define ENGINE(path, name) \
	do { \
		unsigned int percent = 0, period; \
		nvmlReturn_t code = CALL(name, d, &percent, &period); \
		say(path, code, "%u %%", percent); \
	} while (0)

static void use(nvmlDevice_t d) {
	nvmlUtilization_t u = {0};
	nvmlReturn_t code = CALL(nvmlDeviceGetUtilizationRates, d, &u);
	say("utilization/gpu_util", code, "%u %%", u.gpu);
	say("utilization/memory_util", code, "%u %%", u.memory);
	ENGINE("utilization/encoder_util", nvmlDeviceGetEncoderUtilization);
	ENGINE("utilization/decoder_util", nvmlDeviceGetDecoderUtilization);
	ENGINE("utilization/jpeg_util", nvmlDeviceGetJpgUtilization);
	ENGINE("utilization/ofa_util", nvmlDeviceGetOfaUtilization);
	unsigned int sessions = 0, fps = 0, latency = 0;
	nvmlFBCStats_t capture = {0};
	code = CALL(nvmlDeviceGetEncoderStats, d, &sessions, &fps, &latency);
	say("encoder_stats/session_count", code, "%u", sessions);
	say("encoder_stats/average_fps", code, "%u", fps);
	say("encoder_stats/average_latency", code, "%u", latency);
	code = CALL(nvmlDeviceGetFBCStats, d, &capture);
	say("fbc_stats/session_count", code, "%u", capture.sessionsCount);
	say("fbc_stats/average_fps", code, "%u", capture.averageFPS);
	say("fbc_stats/average_latency", code, "%u", capture.averageLatency);
	NUMBER("fan_speed", "%u %%", 1, nvmlDeviceGetFanSpeed_v2, 0);
}

void tell_state(nvmlDevice_t d) {
	memory(d);
	reasons(d);
	errors(d);
	repairs(d);
	heat(d);
	power(d);
	clocks(d);
	use(d);
	tell_fabric(d);
}
