// What a fake GPU tells of itself: each reading's name, as `set` takes it, what it is where no
// board says otherwise, and by how much it grows with the GPU's number. NONE is not supported,
// FOLLOW is derived from another reading (readings.c, settle). Units are NVML's own.
#ifndef FAKENVML_READINGS_H
#define FAKENVML_READINGS_H

#include <limits.h>

#define NONE LLONG_MIN
#define FOLLOW (LLONG_MIN + 1)

// What a GPU is; `garbage` leaves these alone. nvlink5 says which error counters the links have:
// none those up to the fourth generation, 1 those from the fifth on, 2 both.
#define TRAITS(R) \
	R(arch, 9, 0) R(cc_major, 9, 0) R(cc_minor, 0, 0) R(brand, 14, 0) R(module, 1, 1) R(numa, NONE, 0) \
	R(virtualization, 0, 0) R(gsp, 1, 0) R(pci_device, 0x233010DE, 0) R(pci_subsystem, 0x16C110DE, 0) \
	R(slot, 0, 0) R(tray, 0, 0) R(host, 1, 0) R(peer, 0, 0) R(pdi, 0x1000, 1) R(inforom_ecc, 716, 0) R(inforom_oem, 21, 0) \
	R(gpm, 1, 0) R(mig, 1, 0) R(mig_pending, FOLLOW, 0) R(events, 8, 0) R(fans, NONE, 0) R(nvlinks, 18, 0) \
	R(nvlink_version, 6, 0) R(nvlink5, NONE, 0) R(nvlink_remote, 2, 0) R(switch_links, FOLLOW, 0) R(c2c, 0, 0) \
	R(fabric_state, 3, 0) R(fabric_status, 0, 0) R(fabric_clique, 0, 0) R(fabric_health, 1, 0) R(fabric_mask, 0x11AA, 0) \
	R(sram_status, 1, 0) R(throughput, 1, 0) R(process_list, 1, 0)

#define METRICS(R) \
	/* mW */ \
	R(power, 300000, 10000) R(power_average, FOLLOW, 0) R(power_instant, FOLLOW, 0) R(module_power, NONE, 0) \
	R(memory_power, NONE, 0) R(memory_power_average, NONE, 0) R(limit_min, 200000, 0) R(limit_max, 700000, 0) R(limit_default, 700000, 0) \
	R(limit, 650000, 0) R(limit_requested, 650000, 0) \
	/* degrees Celsius; tlimit are offsets to the slowdown */ \
	R(temperature, 50, 1) R(memory_temperature, 60, 1) R(margin, 37, -1) R(shutdown, 92, 0) R(slowdown, 89, 0) \
	R(memory_max, 95, 0) R(gpu_max, 87, 0) R(shutdown_tlimit, NONE, 0) R(slowdown_tlimit, NONE, 0) \
	R(memory_tlimit, NONE, 0) R(gpu_tlimit, NONE, 0) \
	/* bytes, and KiB where it says so */ \
	R(mem_total, 80ll << 30, 0) R(mem_reserved, 1 << 30, 0) R(mem_used, 10ll << 30, 0) R(bar1_total, 128ll << 30, 0) \
	R(bar1_used, 4 << 20, 0) R(protected_total, 0, 0) R(protected_used, 0, 0) R(cc_protected_kib, 0, 0) \
	R(cc_unprotected_kib, 80ll << 20, 0) \
	/* MHz */ \
	R(clock_graphics, 1000, 0) R(clock_sm, 1100, 0) R(clock_mem, 1200, 0) R(clock_video, 1300, 0) \
	R(max_clock_graphics, 2000, 0) R(max_clock_sm, 2100, 0) R(max_clock_mem, 2200, 0) R(max_clock_video, 2300, 0) \
	R(app_clock_graphics, 1980, 0) R(app_clock_mem, 2619, 0) \
	/* percent */ \
	R(load, 40, 0) R(mem_load, FOLLOW, 0) R(encoder, 10, 0) R(decoder, 20, 0) R(jpeg, 30, 0) R(ofa, 40, 0) \
	R(enc_sessions, 0, 0) R(enc_fps, 0, 0) R(enc_latency, 0, 0) R(fbc_sessions, 0, 0) R(fbc_fps, 0, 0) R(fbc_latency, 0, 0) \
	R(pstate, 0, 0) R(persistence, 1, 0) R(compute_mode, 0, 0) R(display_active, 0, 0) R(display_mode, 1, 0) \
	R(accounting, 0, 0) R(reasons, 0, 0) R(reasons_supported, 0x1ff, 0) \
	/* ns */ \
	R(throttle_power, 1000000000, 0) R(throttle_thermal, 0, 0) R(throttle_sync, 2000000000, 0) R(throttle_board, 0, 0) \
	R(throttle_low, 0, 0) R(throttle_reliability, 0, 0) R(throttle_app, 0, 0) R(throttle_base, 0, 0) \
	R(throttle_sw_thermal, 3000000000, 0) R(throttle_hw_thermal, 4000000000, 0) R(throttle_brake, 5000000000, 0) \
	/* counts; _lifetime are the aggregate ones */ \
	R(ecc, 1, 0) R(ecc_pending, 1, 0) R(ecc_corrected, 3, 0) R(ecc_uncorrected, 0, 0) R(ecc_corrected_lifetime, 30, 0) \
	R(ecc_uncorrected_lifetime, 1, 0) R(sram_corrected, 0, 0) R(sram_uncorrected, 0, 0) R(sram_corrected_lifetime, 0, 0) \
	R(sram_uncorrected_lifetime, 0, 0) R(sram_parity, 0, 0) R(sram_secded, 0, 0) R(sram_parity_lifetime, 0, 0) \
	R(sram_secded_lifetime, 0, 0) R(sram_l2, 0, 0) R(sram_sm, 0, 0) R(sram_pcie, 0, 0) R(sram_mcu, 0, 0) R(sram_other, 0, 0) \
	R(sram_exceeded, 0, 0) R(remap_corrected, 0, 0) R(remap_uncorrected, 0, 0) R(remap_pending, 0, 0) R(remap_failed, 0, 0) \
	R(remap_corrected_inactive, 0, 0) R(remap_uncorrected_inactive, 0, 0) R(banks_max, 2560, 0) R(banks_high, 0, 0) \
	R(banks_partial, 0, 0) R(banks_low, 0, 0) R(banks_none, 0, 0) R(repair_channel, NONE, 0) R(repair_tpc, NONE, 0) \
	R(unrepairable, NONE, 0) R(retired_sbe, NONE, 0) R(retired_dbe, NONE, 0) R(retired_pending, NONE, 0) R(recovery, 0, 0) \
	/* percent, revolutions a minute */ \
	R(fan, 30, 0) R(fan_rpm, 1500, 0) R(fan_target, 30, 0) \
	/* MB/s; pcie_tx and pcie_rx are rates in bytes a second, of which the counters are the integrals */ \
	R(pcie_gen, 5, 0) R(pcie_width, 16, 0) R(pcie_gen_max, 5, 0) R(pcie_width_max, 16, 0) R(pcie_gpu_gen_max, 5, 0) \
	R(pcie_speed, 32000, 0) R(pcie_speed_max, 32000, 0) R(pcie_tx, 1000000, 0) R(pcie_rx, 2000000, 0) R(pcie_replay, 0, 0) \
	R(pcie_rollover, 0, 0) R(pcie_recovery, 0, 0) R(pcie_correctable, 0, 0) R(pcie_naks_received, 0, 0) \
	R(pcie_receiver, 0, 0) R(pcie_bad_tlp, 0, 0) R(pcie_naks_sent, 0, 0) R(pcie_bad_dllp, 0, 0) R(pcie_non_fatal, 0, 0) \
	R(pcie_fatal, 0, 0) R(pcie_unsupported, 0, 0) R(pcie_lcrc, 0, 0) R(pcie_lane, 0, 0) \
	/* of each link: MB/s, and rates in KiB a second of which the counters are the integrals */ \
	R(nvlink_speed, 26562, 0) R(nvlink_tx, 1000, 0) R(nvlink_rx, 2000, 0) R(nvlink_replay, 0, 0) R(nvlink_recovery, 0, 0) \
	R(nvlink_crc, 0, 0) R(nvlink_ecc, 0, 0) R(nvlink_low_power, 0, 0) R(nvlink_rate, NONE, 0) R(nvlink_bw_mode, 0, 0) \
	R(nvlink_malformed, 0, 0) R(nvlink_overruns, 0, 0) R(nvlink_receive, 0, 0) R(nvlink_remote_errors, 0, 0) \
	R(nvlink_general, 0, 0) R(nvlink_integrity, 0, 0) R(nvlink_discards, 0, 0) R(nvlink_recovered, 0, 0) \
	R(nvlink_unrecovered, 0, 0) R(nvlink_recoveries, 0, 0) R(nvlink_effective, 0, 0) R(nvlink_effective_ber, 0x10F, 0) \
	R(nvlink_symbol, 0, 0) R(nvlink_symbol_ber, 0x10F, 0) R(nvlink_fec, 0, 0) R(nvlink_raw, 0, 0) R(nvlink_raw_ber, 0x10F, 0) \
	R(nvlink_plr, 0, 0) R(nvlink_plr_retry, 0, 0) \
	R(c2c_links, NONE, 0) R(c2c_status, NONE, 0) R(c2c_speed, NONE, 0) R(c2c_errors, NONE, 0) R(c2c_replay, NONE, 0) \
	R(c2c_replay_b2b, NONE, 0) R(c2c_power, NONE, 0) \
	R(edpp, 100, 0) R(mma_stall, NONE, 0) R(smoothing, 1, 0)

enum reading {
#define NUMBER(name, value, step) R_##name,
	TRAITS(NUMBER) FIRST_METRIC, BEFORE_METRICS = FIRST_METRIC - 1,
	METRICS(NUMBER) READINGS
#undef NUMBER
};

#endif
