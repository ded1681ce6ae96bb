// The fake devices' numbered fields, with the numbers NVIDIA has moved about.
#include "config.h"

#include <string.h>

// How a field's value is come by.
enum sort { PLAIN, ENERGY, POWER, PCIE, LINK, LINK_SUM, LINK_STATE, FEC };

struct row {
	int first, last; // ids; the rows of an id that has moved differ in their drivers
	enum sort sort;
	enum reading what;
	nvmlValueType_t type;
	int since, until; // drivers
};

#define INT NVML_VALUE_TYPE_SIGNED_INT
#define UINT NVML_VALUE_TYPE_UNSIGNED_INT
#define ULL NVML_VALUE_TYPE_UNSIGNED_LONG_LONG

static const struct row rows[] = {
	{0}, // for fields there are not
	{1, 1, PLAIN, R_ecc, UINT}, {2, 2, PLAIN, R_ecc_pending, UINT}, {3, 3, PLAIN, R_ecc_corrected, ULL},
	{4, 4, PLAIN, R_ecc_uncorrected, ULL}, {5, 5, PLAIN, R_ecc_corrected_lifetime, ULL},
	{6, 6, PLAIN, R_ecc_uncorrected_lifetime, ULL}, {11, 11, PLAIN, R_ecc_corrected, ULL},
	{12, 12, PLAIN, R_ecc_uncorrected, ULL}, {22, 22, PLAIN, R_ecc_corrected_lifetime, ULL},
	{23, 23, PLAIN, R_ecc_uncorrected_lifetime, ULL}, {29, 29, PLAIN, R_retired_sbe, ULL}, {30, 30, PLAIN, R_retired_dbe, ULL},
	{31, 31, PLAIN, R_retired_pending, UINT}, {74, 74, PLAIN, R_throttle_power, ULL}, {75, 75, PLAIN, R_throttle_thermal, ULL},
	{76, 76, PLAIN, R_throttle_sync, ULL}, {77, 77, PLAIN, R_throttle_board, ULL}, {78, 78, PLAIN, R_throttle_low, ULL},
	{79, 79, PLAIN, R_throttle_reliability, ULL}, {80, 80, PLAIN, R_throttle_app, ULL}, {81, 81, PLAIN, R_throttle_base, ULL},
	{82, 82, PLAIN, R_memory_temperature, UINT}, {83, 83, ENERGY, R_power, ULL}, {90, 90, PLAIN, R_nvlink_speed, UINT},
	{91, 91, PLAIN, R_nvlinks, UINT}, {94, 94, PLAIN, R_pcie_replay, UINT}, {95, 95, PLAIN, R_pcie_rollover, UINT},
	{138, 141, LINK_SUM, R_nvlink_tx, ULL}, {142, 142, PLAIN, R_remap_corrected, UINT}, {143, 143, PLAIN, R_remap_uncorrected, UINT},
	{144, 144, PLAIN, R_remap_pending, UINT}, {145, 145, PLAIN, R_remap_failed, UINT}, {147, 147, PLAIN, R_switch_links, UINT, 460},
	{161, 161, LINK, R_nvlink_replay, ULL, 520}, {162, 162, LINK, R_nvlink_recovery, ULL, 520}, {163, 163, LINK, R_nvlink_crc, ULL, 520},
	{164, 164, LINK, R_nvlink_speed, UINT, 520}, {165, 165, LINK_STATE, R_nvlinks, UINT, 520}, {166, 166, LINK, R_nvlink_version, UINT, 520},
	{167, 167, LINK, R_nvlink_low_power, UINT, 525}, {169, 169, PLAIN, R_pcie_recovery, ULL, 525}, {170, 170, PLAIN, R_c2c_links, UINT, 535},
	{171, 171, PLAIN, R_c2c_status, UINT, 535}, {172, 172, PLAIN, R_c2c_speed, UINT, 535}, {173, 173, PLAIN, R_pcie_correctable, ULL, 535},
	{174, 174, PLAIN, R_pcie_naks_received, ULL, 535}, {175, 175, PLAIN, R_pcie_receiver, ULL, 535}, {176, 176, PLAIN, R_pcie_bad_tlp, ULL, 535},
	{177, 177, PLAIN, R_pcie_naks_sent, ULL, 535}, {178, 178, PLAIN, R_pcie_bad_dllp, ULL, 535}, {179, 179, PLAIN, R_pcie_non_fatal, ULL, 535},
	{180, 180, PLAIN, R_pcie_fatal, ULL, 535}, {181, 181, PLAIN, R_pcie_unsupported, ULL, 535}, {182, 182, PLAIN, R_pcie_lcrc, ULL, 535},
	{183, 183, PLAIN, R_pcie_lane, ULL, 535}, {185, 185, POWER, R_power_average, UINT, 535}, {186, 186, POWER, R_power_instant, UINT, 535},
	{187, 187, PLAIN, R_limit_min, UINT, 535}, {188, 188, PLAIN, R_limit_max, UINT, 535}, {189, 189, PLAIN, R_limit_default, UINT, 535},
	{190, 190, PLAIN, R_limit, UINT, 535}, {191, 191, ENERGY, R_power, ULL, 535}, {192, 192, PLAIN, R_limit_requested, UINT, 535},
	{193, 193, PLAIN, R_shutdown_tlimit, INT, 535}, {194, 194, PLAIN, R_slowdown_tlimit, INT, 535}, {195, 195, PLAIN, R_memory_tlimit, INT, 535},
	{196, 196, PLAIN, R_gpu_tlimit, INT, 535}, {197, 197, PCIE, R_pcie_tx, ULL, 555}, {198, 198, PCIE, R_pcie_rx, ULL, 555},
	{202, 202, LINK_SUM, R_nvlink_tx, ULL, 560}, {204, 204, LINK_SUM, R_nvlink_rx, ULL, 560}, {206, 206, LINK, R_nvlink_malformed, ULL, 560},
	{207, 207, LINK, R_nvlink_overruns, ULL, 560}, {208, 208, LINK, R_nvlink_receive, ULL, 560}, {209, 209, LINK, R_nvlink_remote_errors, ULL, 560},
	{210, 210, LINK, R_nvlink_general, ULL, 560}, {211, 211, LINK, R_nvlink_integrity, ULL, 560}, {212, 212, LINK, R_nvlink_discards, ULL, 560},
	{213, 213, LINK, R_nvlink_recovered, ULL, 560}, {214, 214, LINK, R_nvlink_unrecovered, ULL, 560}, {215, 215, LINK, R_nvlink_recoveries, ULL, 560},
	{219, 219, LINK, R_nvlink_effective, ULL, 560}, {220, 220, LINK, R_nvlink_effective_ber, ULL, 560}, {221, 221, LINK, R_nvlink_symbol, ULL, 560},
	{222, 222, LINK, R_nvlink_symbol_ber, ULL, 560}, {230, 230, PLAIN, R_recovery, UINT, 570}, {231, 231, PLAIN, R_c2c_errors, ULL, 575},
	{232, 232, PLAIN, R_c2c_replay, ULL, 575}, {233, 233, PLAIN, R_c2c_replay_b2b, ULL, 575}, {234, 234, PLAIN, R_c2c_power, UINT, 575},
	{235, 250, FEC, R_nvlink_fec, ULL, 570}, {251, 268, PLAIN, R_smoothing, UINT, 570, 574}, {256, 273, PLAIN, R_smoothing, UINT, 575, 589},
	{251, 268, PLAIN, R_smoothing, UINT, 590}, {251, 251, PLAIN, R_throttle_sw_thermal, ULL, 575, 589},
	{252, 252, PLAIN, R_throttle_hw_thermal, ULL, 575, 589}, {253, 253, PLAIN, R_throttle_brake, ULL, 575, 589},
	{269, 269, PLAIN, R_throttle_sw_thermal, ULL, 590}, {270, 270, PLAIN, R_throttle_hw_thermal, ULL, 590},
	{271, 271, PLAIN, R_throttle_brake, ULL, 590}, {274, 274, PLAIN, R_edpp, UINT, 590}, {289, 290, LINK, R_nvlink_raw, ULL, 595},
	{291, 293, LINK, R_nvlink_raw_ber, ULL, 595}, {294, 294, LINK, R_nvlink_plr, ULL, 595}, {295, 295, LINK, R_nvlink_plr_retry, ULL, 595},
	{296, 296, LINK, R_nvlink_rate, UINT, 610}, {297, 297, PLAIN, R_mma_stall, UINT, 610},
	{301, 301, PLAIN, R_remap_corrected_inactive, UINT, 595}, {302, 302, PLAIN, R_remap_uncorrected_inactive, UINT, 595},
};

// index_fields finds the rows of the driver's ids once, so that a call need not.
void index_fields(struct config *c) {
	for (int i = 1; i < (int)(sizeof rows / sizeof *rows); i++) {
		const struct row *r = &rows[i];
		if (c->major < r->since || (r->until && c->major > r->until)) continue;
		for (int id = r->first; id <= r->last; id++) c->row[id] = i;
	}
}

// beyond is the first id the driver's header did not have.
static unsigned int beyond(int major) {
	static const struct { int since; unsigned int id; } ends[] = {
		{595, 303}, {590, 289}, {575, 274}, {570, 269}, {560, 230}, {555, 223}, {550, 200}, {535, 197}, {530, 173},
		{525, 170}, {520, 167}, {470, 161}, {460, 148}, {455, 147}, {0, 146},
	};
	int i = 0;
	while (major < ends[i].since) i++;
	return ends[i].id;
}

static void put(nvmlFieldValue_t *v, nvmlValueType_t type, long long n) {
	v->valueType = type;
	v->value.ullVal = 0;
	if (type == INT) v->value.siVal = n;
	else if (type == UINT) v->value.uiVal = n;
	else v->value.ullVal = n;
}

// rubbish is what drivers in trouble have been seen to answer, in turn.
static void rubbish(nvmlFieldValue_t *v) {
	v->value.ullVal = 0;
	switch (v->fieldId % 4) {
	case 0:
		v->valueType = UINT;
		v->value.uiVal = 0xFFFFFFFF;
		break;
	case 1:
		v->valueType = ULL;
		v->value.ullVal = 9200000000000000000ull;
		break;
	case 2:
		v->valueType = UINT;
		v->value.uiVal = 808334905;
		break;
	default:
		v->valueType = NVML_VALUE_TYPE_SIGNED_LONG_LONG;
		v->value.sllVal = -1;
	}
}

static const struct override *overridden(const struct config *c, int gpu, const nvmlFieldValue_t *v) {
	const struct override *found = NULL;
	for (int i = 0; i < c->overrides.n; i++) {
		const struct override *o = &c->overrides.at[i];
		if (o->gpu == gpu && o->id == (int)v->fieldId && (o->any_scope || o->scope == v->scopeId)) found = o;
	}
	return found;
}

// excluded says whether an error counter is one of another generation of NVLink.
static int excluded(const struct config *c, int gpu, unsigned int id) {
	const int fifth = has(c, gpu, R_nvlink5), all = fifth && c->gpu[gpu].value[R_nvlink5] > 1;
	const int old_errors = id >= 161 && id <= 163, new_errors = (id >= 201 && id <= 222) || (id >= 235 && id <= 250) || (id >= 289 && id <= 295);
	return !all && ((old_errors && fifth) || (new_errors && !fifth));
}

static double link_bytes(const struct config *c, int gpu, const struct row *r, const nvmlFieldValue_t *v, unsigned int link) {
	const int receive = r->what == R_nvlink_rx || (v->fieldId <= 141 && v->fieldId % 2), raw = v->fieldId == 140 || v->fieldId == 141;
	double kib = nvlink_kib(c, gpu, link, receive, now()) * (raw ? 1.25 : 1);
	return v->fieldId > 141 ? kib * 1024 : kib;
}

static nvmlReturn_t of_link(const struct config *c, int gpu, const struct row *r, nvmlFieldValue_t *v) {
	const unsigned int links = has(c, gpu, R_nvlinks) ? get(c, gpu, R_nvlinks) : 0, all = ~0u;
	if (!links || excluded(c, gpu, v->fieldId)) return NVML_ERROR_NOT_SUPPORTED;
	if (v->scopeId >= links && !(v->scopeId == all && (r->sort == LINK_SUM || r->type == ULL))) return NVML_ERROR_INVALID_ARGUMENT;
	long long n;
	TAKE(n, r->what);
	if (r->sort == LINK_STATE) n = !(c->gpu[gpu].down >> v->scopeId & 1);
	if (r->sort == FEC) n >>= v->fieldId - r->first;
	if (r->sort == LINK_SUM) {
		double sum = 0;
		unsigned int first = v->scopeId == all ? 0 : v->scopeId, last = v->scopeId == all ? links - 1 : v->scopeId;
		for (unsigned int link = first; link <= last; link++) sum += link_bytes(c, gpu, r, v, link);
		n = sum;
	} else if (v->scopeId == all && (v->fieldId < 220 || v->fieldId > 222 || v->fieldId == 221)) n *= links;
	put(v, r->type, n);
	return NVML_SUCCESS;
}

static nvmlReturn_t fill(nvmlFieldValue_t *v, int gpu, const struct config *c) {
	const struct override *o = c->overrides.n ? overridden(c, gpu, v) : NULL;
	if (o) {
		v->valueType = o->type;
		v->value = o->value;
		return o->failure;
	}
	if (!v->fieldId || v->fieldId >= beyond(c->major)) return NVML_ERROR_INVALID_ARGUMENT;
	const struct row *r = &rows[c->row[v->fieldId]];
	if (!r->first) return NVML_ERROR_NOT_SUPPORTED;
	const int remaps = (v->fieldId >= 142 && v->fieldId <= 145) || v->fieldId >= 301;
	if (remaps && c->gpu[gpu].mig && c->gpu[gpu].instances) return NVML_ERROR_NOT_SUPPORTED;
	enum reading what = r->what;
	if (r->sort == POWER && v->scopeId) {
		const enum reading parts[] = {0, R_module_power, r->what == R_power_average ? R_memory_power_average : R_memory_power};
		if (v->scopeId > 2) return NVML_ERROR_INVALID_ARGUMENT;
		what = parts[v->scopeId];
	}
	long long n;
	TAKE(n, what);
	if (c->gpu[gpu].garbage) rubbish(v);
	else if (r->sort >= LINK) return of_link(c, gpu, r, v);
	else if (r->sort == ENERGY) put(v, r->type, energy(c, gpu, now()));
	else if (r->sort == PCIE) put(v, r->type, pcie_bytes(c, gpu, what == R_pcie_rx, now()));
	else put(v, r->type, n);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t d, int n, nvmlFieldValue_t *values) {
	ENTER_DEVICE(d);
	const unsigned long long at = micros(1);
	for (int i = 0; i < n; i++) {
		values[i].timestamp = at;
		values[i].nvmlReturn = fill(&values[i], gpu, c);
	}
	return NVML_SUCCESS;
}
