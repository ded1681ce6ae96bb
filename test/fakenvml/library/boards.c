// What sets one board apart from another. Those marked captured have the numbers nvidia-smi showed on
// a real one; of the others only what is supported, and the data sheet's sizes, is meant.
#include "config.h"

#include <stdio.h>
#include <string.h>

struct difference {
	enum reading what;
	long long value;
};

enum { MAX_DIFFERENCES = 96 };

static const long long plain[READINGS] = {
#define VALUE(name, value, step) [R_##name] = value,
	TRAITS(VALUE) METRICS(VALUE)
};

static const int steps[READINGS] = {
#define STEP(name, value, step) [R_##name] = step,
	TRAITS(STEP) METRICS(STEP)
};

// What the boards of one make have in common.
#define LIMITS(min, max, usual) {R_limit_min, min}, {R_limit_max, max}, {R_limit_default, usual}, {R_limit, usual}, {R_limit_requested, usual}
#define CLOCKS(sm, mem, video) {R_clock_graphics, sm}, {R_clock_sm, sm}, {R_clock_mem, mem}, {R_clock_video, video}
#define MAX_CLOCKS(sm, mem, video) {R_max_clock_graphics, sm}, {R_max_clock_sm, sm}, {R_max_clock_mem, mem}, {R_max_clock_video, video}
#define MEMORY(total, reserved, used) {R_mem_total, total}, {R_mem_reserved, reserved}, {R_mem_used, used}
#define PCIE(gen) {R_pcie_gen, gen}, {R_pcie_gen_max, gen}, {R_pcie_gpu_gen_max, gen}, {R_pcie_speed, 1000 << gen}, {R_pcie_speed_max, 1000 << gen}
#define OFFSETS {R_shutdown, NONE}, {R_slowdown, NONE}, {R_memory_max, NONE}, {R_gpu_max, NONE}, {R_shutdown_tlimit, -8}, \
	{R_slowdown_tlimit, -2}, {R_memory_tlimit, 0}, {R_gpu_tlimit, 0}
#define NO_LINKS {R_nvlinks, NONE}, {R_switch_links, NONE}, {R_nvlink_version, NONE}, {R_nvlink_speed, NONE}, {R_nvlink_bw_mode, NONE}
#define NO_FABRIC {R_fabric_state, NONE}, {R_switch_links, NONE}
#define NO_DATA_CENTER NO_LINKS, NO_FABRIC, {R_mig, NONE}, {R_gpm, NONE}, {R_c2c, NONE}, {R_edpp, NONE}, {R_memory_temperature, NONE}
#define NO_REMAP {R_remap_corrected, NONE}, {R_remap_uncorrected, NONE}, {R_remap_pending, NONE}, {R_remap_failed, NONE}, \
	{R_remap_corrected_inactive, NONE}, {R_remap_uncorrected_inactive, NONE}, {R_banks_max, NONE}
#define NO_ECC {R_ecc, NONE}, {R_ecc_pending, NONE}, {R_ecc_corrected, NONE}, {R_ecc_uncorrected, NONE}, {R_ecc_corrected_lifetime, NONE}, \
	{R_ecc_uncorrected_lifetime, NONE}, {R_inforom_ecc, NONE}
#define NO_ERRORS_YET {R_ecc_corrected, 0}, {R_ecc_corrected_lifetime, 0}, {R_ecc_uncorrected_lifetime, 0}
#define QUIET {R_throttle_power, 0}, {R_throttle_sync, 0}, {R_throttle_sw_thermal, 0}, {R_throttle_hw_thermal, 0}, {R_throttle_brake, 0}, \
	{R_encoder, 0}, {R_decoder, 0}, {R_jpeg, 0}, {R_ofa, 0}
#define NO_CC {R_protected_total, NONE}, {R_protected_used, NONE}, {R_cc_protected_kib, NONE}, {R_cc_unprotected_kib, NONE}
#define NO_MARGIN {R_margin, NONE}
#define GEFORCE NO_DATA_CENTER, NO_ECC, NO_REMAP, NO_MARGIN, {R_brand, 5}, {R_persistence, 0}, {R_app_clock_graphics, NONE}, \
	{R_app_clock_mem, NONE}, {R_cc_protected_kib, NONE}, {R_fans, 1}, {R_fan_target, 0}, {R_recovery, 0}
#define HOPPER OFFSETS, QUIET, NO_ERRORS_YET
#define BLACKWELL HOPPER, {R_arch, 10}, {R_cc_major, 10}, {R_nvlink_version, 7}, {R_nvlink_speed, 53125}, {R_nvlink5, 1}, \
	{R_repair_channel, 0}, {R_repair_tpc, 0}, {R_unrepairable, 0}, {R_mma_stall, 0}, {R_nvlink_rate, 50000}

static const struct {
	const char *name, *model;
	int serial;
	struct difference differs[MAX_DIFFERENCES];
} boards[] = {
	// captured
	{"h200", "NVIDIA H200", 1, {HOPPER, LIMITS(200000, 700000, 700000), {R_power, 627400}, {R_power_instant, 626260},
		CLOCKS(1980, 3201, 1545), MAX_CLOCKS(1980, 3201, 1545), MEMORY(150754820096, 643825664, 33934016512), {R_load, 100}, {R_mem_load, 7},
		{R_temperature, 52}, {R_memory_temperature, 40}, {R_margin, 35}, {R_banks_max, 3072}, {R_pci_device, 590680286}, {R_pci_subsystem, 415109342}}},
	{"h100", "NVIDIA H100 80GB HBM3", 1, {HOPPER, LIMITS(200000, 700000, 700000), {R_power, 631950}, {R_power_instant, 625680},
		CLOCKS(1980, 2619, 1545), MAX_CLOCKS(1980, 2619, 1545), MEMORY(85520809984, 502267904, 20780679168), {R_load, 100}, {R_mem_load, 11},
		{R_memory_power_average, 32980}, {R_temperature, 59}, {R_memory_temperature, 54}, {R_margin, 26}, {R_banks_max, 2560}, {R_pci_device, 590352606}, {R_pci_subsystem, 381751518}}},
	{"l40s", "NVIDIA L40S", 1, {NO_DATA_CENTER, OFFSETS, QUIET, NO_ERRORS_YET, {R_arch, 8}, {R_cc_major, 8}, {R_cc_minor, 9},
		{R_throttle_power, 204642816000}, LIMITS(100000, 350000, 350000), {R_power, 110230}, {R_power_instant, 112380}, CLOCKS(2520, 9001, 1965),
		MAX_CLOCKS(2520, 9001, 1965),
		MEMORY(48305799168, 638582784, 1294991360), {R_load, 9}, {R_mem_load, 2}, {R_encoder, 60}, {R_enc_sessions, 2}, {R_enc_fps, 237},
		{R_enc_latency, 4271133}, {R_temperature, 54}, {R_margin, 34}, {R_banks_max, 192}, {R_accounting, 1}, {R_persistence, 0}, {R_inforom_ecc, 616},
		PCIE(4), {R_pci_device, 649662686}, {R_pci_subsystem, 407965918}}},
	{"rtx4080", "NVIDIA GeForce RTX 4080 SUPER", 0, {GEFORCE, QUIET, {R_arch, 8}, {R_cc_major, 8}, {R_cc_minor, 9}, LIMITS(150000, 400000, 320000),
		{R_power, 84240}, {R_power_instant, 86410}, CLOCKS(2805, 11251, 2145), MAX_CLOCKS(3165, 11501, 2145), MEMORY(17171480576, 455081984, 1545601024),
		{R_load, 7}, {R_mem_load, 2}, {R_encoder, 72}, {R_enc_sessions, 2}, {R_enc_fps, 184}, {R_enc_latency, 62844}, {R_temperature, 46}, {R_fan, 0},
		{R_fan_rpm, 0}, {R_display_active, 1}, {R_display_mode, 1}, {R_pstate, 2}, {R_inforom_oem, 20}, PCIE(4), {R_pci_device, 654446814},
		{R_pci_subsystem, 1360008290}}},
	{"rtx2080", "NVIDIA GeForce RTX 2080 SUPER", 0, {GEFORCE, QUIET, {R_arch, 6}, {R_cc_major, 7}, {R_cc_minor, 5}, {R_throttle_power, 15820333506000},
		LIMITS(105000, 350000, 250000), {R_power, 98140}, {R_power_average, NONE}, CLOCKS(2070, 7500, 1920), MAX_CLOCKS(2145, 7751, 1920),
		MEMORY(8589934592, 419430400, 854589440), {R_load, 8}, {R_mem_load, 3}, {R_encoder, 100}, {R_enc_sessions, 2}, {R_enc_fps, 108},
		{R_enc_latency, 96754}, {R_temperature, 38}, {R_fan, 38}, {R_fan_target, 38}, {R_pstate, 2}, {R_sram_status, NONE}, {R_inforom_oem, 11}, PCIE(3),
		{R_pci_device, 511774942}, {R_pci_subsystem, 1074074712}}},
	// not captured
	{"a100", "NVIDIA A100-SXM4-80GB", 1, {QUIET, NO_ERRORS_YET, NO_CC, NO_MARGIN, NO_FABRIC, {R_switch_links, 12}, {R_arch, 7}, {R_cc_major, 8},
		{R_power_average, NONE}, {R_gpm, NONE}, {R_c2c, NONE}, {R_edpp, NONE}, {R_nvlinks, 12}, {R_nvlink_version, 4}, {R_nvlink_speed, 25000},
		LIMITS(100000, 400000, 400000), CLOCKS(1410, 1593, 1275), MAX_CLOCKS(1410, 1593, 1290), MEMORY(85899345920, 600000000, 10737418240),
		{R_banks_max, 640}, PCIE(4), {R_pci_device, 0x20B210DE}, {R_pci_subsystem, 0x146310DE}}},
	{"v100", "Tesla V100-SXM2-32GB", 1, {QUIET, NO_ERRORS_YET, NO_CC, NO_MARGIN, NO_FABRIC, NO_REMAP, {R_arch, 5}, {R_cc_major, 7}, {R_brand, 2},
		{R_power_average, NONE}, {R_gpm, NONE}, {R_mig, NONE}, {R_gsp, NONE}, {R_c2c, NONE}, {R_edpp, NONE}, {R_jpeg, NONE}, {R_ofa, NONE},
		{R_sram_status, NONE}, {R_retired_sbe, 0}, {R_retired_dbe, 0}, {R_retired_pending, 0}, {R_nvlinks, 6}, {R_nvlink_version, 2},
		{R_nvlink_speed, 25781}, {R_nvlink_remote, 0}, {R_nvlink_tx, NONE}, {R_nvlink_rx, NONE}, LIMITS(150000, 300000, 300000),
		{R_power, 150000}, CLOCKS(1530, 877, 1372), MAX_CLOCKS(1530, 877, 1372),
		MEMORY(34359738368, 300000000, 10737418240), PCIE(3), {R_pci_device, 0x1DB510DE}, {R_pci_subsystem, 0x124910DE}}},
	{"b200", "NVIDIA B200", 1, {BLACKWELL, LIMITS(200000, 1000000, 1000000), {R_power, 700000}, CLOCKS(1965, 3996, 1830), MAX_CLOCKS(1965, 3996, 1830),
		MEMORY(192265846784, 800000000, 10737418240), {R_pci_device, 0x290110DE}, {R_pci_subsystem, 0x199910DE}}},
	{"gb200", "NVIDIA GB200", 1, {BLACKWELL, LIMITS(200000, 1200000, 1200000), {R_power, 800000}, {R_module_power, 1300000}, {R_memory_power, 120000}, {R_memory_power_average, 120000},
		{R_numa, 2}, {R_slot, 5}, {R_tray, 3}, {R_peer, 1}, {R_c2c, 1}, {R_c2c_links, 10}, {R_c2c_status, 1}, {R_c2c_speed, 44712}, {R_c2c_errors, 0},
		{R_c2c_replay, 0}, {R_c2c_replay_b2b, 0}, {R_c2c_power, 0}, CLOCKS(2062, 3996, 1942), MAX_CLOCKS(2062, 3996, 1942),
		MEMORY(198674743296, 800000000, 10737418240), {R_pci_device, 0x294110DE}, {R_pci_subsystem, 0x204610DE}}},
	{"everything", "Fake Everything", 1, {{R_nvlink5, 2}, {R_fans, 2}, {R_numa, 0}, {R_module_power, 500000}, {R_memory_power, 50000}, {R_memory_power_average, 50000},
		{R_shutdown_tlimit, -8}, {R_slowdown_tlimit, -2}, {R_memory_tlimit, 0}, {R_gpu_tlimit, 0}, {R_repair_channel, 0}, {R_repair_tpc, 0},
		{R_unrepairable, 0}, {R_retired_sbe, 2}, {R_retired_dbe, 1}, {R_retired_pending, 0}, {R_nvlink_rate, 25000}, {R_mma_stall, 3}, {R_c2c, 1},
		{R_c2c_links, 10}, {R_c2c_status, 1}, {R_c2c_speed, 44712}, {R_c2c_errors, 0}, {R_c2c_replay, 0}, {R_c2c_replay_b2b, 0}, {R_c2c_power, 0}}},
};

void board_reset(struct gpu *g, int number) {
	*g = (struct gpu){.bus = 0x1a + number};
	for (int i = 0; i < READINGS; i++) g->value[i] = plain[i] + (plain[i] > FOLLOW ? steps[i] * number : 0);
	snprintf(g->model, sizeof g->model, "Fake H100");
	snprintf(g->uuid, sizeof g->uuid, "GPU-00000000-0000-4000-8000-%012x", number);
	snprintf(g->serial, sizeof g->serial, "165012300%04d", number);
}

int board_set(struct gpu *g, const char *board) {
	for (size_t b = 0; b < sizeof boards / sizeof *boards; b++) {
		if (strcmp(boards[b].name, board)) continue;
		snprintf(g->model, sizeof g->model, "%s", boards[b].model);
		if (!boards[b].serial) *g->serial = 0;
		for (const struct difference *d = boards[b].differs; d->what || d->value; d++) g->value[d->what] = d->value;
		return 1;
	}
	return 0;
}
