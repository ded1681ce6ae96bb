package gpu

import "strings"

const pcie = "gpu_link_type=pcie"

var links = []row{
	{ours: "gpu_link_generation{" + pcie + "}", theirs: "pci/pci_gpu_link_info/pcie_gen/current_link_gen", csv: "pcie.link.gen.current"},
	{ours: "gpu_link_generation_limit{" + pcie + "}", theirs: "pci/pci_gpu_link_info/pcie_gen/max_link_gen", csv: "pcie.link.gen.max"},
	{ours: "gpu_link_width{" + pcie + "}", theirs: "pci/pci_gpu_link_info/link_widths/current_link_width", csv: "pcie.link.width.current"},
	{ours: "gpu_link_width_limit{" + pcie + "}", theirs: "pci/pci_gpu_link_info/link_widths/max_link_width", csv: "pcie.link.width.max"},
	{ours: "gpu_link_errors_total{" + pcie + ",gpu_link_error_type=replay}", theirs: "pci/replay_counter"},
	{ours: "gpu_link_errors_total{" + pcie + ",gpu_link_error_type=replay_rollover}", theirs: "pci/replay_rollover_counter"},
}

var repair = []row{
	{ours: "gpu_row_remap_rows_total{gpu_ecc_error_type=corrected}", theirs: "remapped_rows/remapped_row_corr", csv: "remapped_rows.correctable"},
	{ours: "gpu_row_remap_rows_total{gpu_ecc_error_type=uncorrected}", theirs: "remapped_rows/remapped_row_unc", csv: "remapped_rows.uncorrectable"},
	{ours: "gpu_row_remap_inactive_rows{gpu_ecc_error_type=corrected}", theirs: "remapped_rows/remapped_row_corr_inactive", csv: "remapped_rows.correctable_inactive", since: 595},
	{ours: "gpu_row_remap_inactive_rows{gpu_ecc_error_type=uncorrected}", theirs: "remapped_rows/remapped_row_unc_inactive", csv: "remapped_rows.uncorrectable_inactive", since: 595},
	{ours: "gpu_row_remap_pending", theirs: "remapped_rows/remapped_row_pending", csv: "remapped_rows.pending"},
	{ours: "gpu_row_remap_failure", theirs: "remapped_rows/remapped_row_failure", csv: "remapped_rows.failure"},
	{ours: "gpu_retired_pages_total{gpu_retired_pages_cause=single_bit}", theirs: "retired_pages/multiple_single_bit_retirement/retired_count", csv: "retired_pages.single_bit_ecc.count"},
	{ours: "gpu_retired_pages_total{gpu_retired_pages_cause=double_bit}", theirs: "retired_pages/double_bit_retirement/retired_count", csv: "retired_pages.double_bit.count"},
	{ours: "gpu_retired_pages_pending", theirs: "retired_pages/pending_retirement|retired_pages/pending_blacklist", csv: "retired_pages.pending"},
	{ours: "gpu_recovery_action?gpu_recovery_action", theirs: "gpu_recovery_action", csv: "gpu_recovery_action", word: true, as: snake, since: 570},
	{ours: "gpu_repair_pending{gpu_repair_part=channel}", theirs: "ecc_errors/channel_repair_pending", since: 580},
	{ours: "gpu_repair_pending{gpu_repair_part=tpc}", theirs: "ecc_errors/tpc_repair_pending", since: 580},
	{ours: "gpu_memory_unrepairable", theirs: "ecc_errors/unrepairable_memory", since: 590},
}

// bankRows are the banks by how many spare rows they have left. Under MIG nvidia-smi's XML may have
// no remapped rows at all, and its CSV the banks.
func bankRows() []row {
	var out []row
	for _, left := range []string{"max", "high", "partial", "low", "none"} {
		ours := "gpu_row_remap_banks{gpu_row_remap_availability=" + left + "}"
		out = append(out,
			row{ours: ours, theirs: "remapped_rows/row_remapper_histogram/row_remapper_histogram_" + left, lax: true},
			row{ours: ours, csv: "remapped_rows.histogram." + left})
	}
	return out
}

var fabric = []row{
	{ours: "gpu_fabric_state?gpu_fabric_state", theirs: "fabric/state", csv: "fabric.state", word: true, as: snake, since: 525},
	{ours: "gpu_fabric_error", theirs: "fabric/status", csv: "fabric.status", zero: "Success", when: "fabric/state=Completed", since: 525},
	{ours: "gpu_fabric_info@gpu_fabric_clique", theirs: "fabric/cliqueId", csv: "fabric.cliqueId", word: true, when: "fabric/state=Completed", since: 525},
	{ours: "gpu_fabric_info@gpu_fabric_cluster", theirs: "fabric/clusterUuid", csv: "fabric.clusterUuid", word: true, as: strings.ToLower, when: "fabric/state=Completed", since: 525},
	{ours: "gpu_fabric_health?gpu_fabric_health", theirs: "fabric/health/summary", word: true, as: first, when: "fabric/state=Completed", since: 580},
	{ours: "gpu_fabric_fault{gpu_fabric_fault=degraded_bandwidth}", theirs: "fabric/health/bandwidth", zero: "Full", when: "fabric/state=Completed", since: 550},
	{ours: "gpu_fabric_fault{gpu_fabric_fault=route_recovery}", theirs: "fabric/health/route_recovery_in_progress", when: "fabric/state=Completed", since: 550},
	{ours: "gpu_fabric_fault{gpu_fabric_fault=route_unhealthy}", theirs: "fabric/health/route_unhealthy", when: "fabric/state=Completed", since: 550},
	{ours: "gpu_fabric_fault{gpu_fabric_fault=access_timeout}", theirs: "fabric/health/access_timeout_recovery", when: "fabric/state=Completed", since: 550},
	{ours: "gpu_fabric_fault{gpu_fabric_fault=incorrect_configuration}", theirs: "fabric/health/incorrect_configuration", zero: "None", when: "fabric/state=Completed", since: 550},
	{ours: "gpu_fabric_partition_assigned", theirs: "fabric/health/partition_assigned", when: "fabric/state=Completed", since: 550},
}

// errorRows are memory errors, by span, by what became of them and by where they were. Boards of
// before Turing have elements of their own; those of before Ampere have one sum for SRAM.
func errorRows() []row {
	var out []row
	for _, span := range []struct{ element, ours string }{{"volatile", ""}, {"aggregate", "lifetime_"}} {
		for _, sort := range []struct{ ours, modern, old string }{{"corrected", "correctable", "single_bit"}, {"uncorrected", "uncorrectable", "double_bit"}} {
			at := "ecc_errors/" + span.element + "/"
			out = append(out, row{
				ours: "gpu_ecc_" + span.ours + "errors_total{gpu_ecc_error_type=" + sort.ours + "}", theirs: at + sort.old + "/total",
				csv: "ecc.errors." + sort.ours + "." + span.element + ".total",
			})
			located := "gpu_ecc_location_" + span.ours + "errors_total{gpu_ecc_error_type=" + sort.ours + ",gpu_ecc_location="
			for _, place := range []struct{ ours, theirs string }{
				{"dram", at + "dram_" + sort.modern + "|" + at + sort.old + "/device_memory"},
				{"sram", at + "sram_" + sort.modern},
				{"l1_cache", at + sort.old + "/l1_cache"},
				{"l2_cache", at + sort.old + "/l2_cache"},
				{"register_file", at + sort.old + "/register_file"},
				{"texture_memory", at + sort.old + "/texture_memory"},
				{"shared_memory", at + sort.old + "/texture_shm"},
				{"cbu", at + sort.old + "/cbu"},
			} {
				w := row{ours: located + place.ours + "}", theirs: place.theirs}
				if place.ours != "shared_memory" { // the one that CSV has not
					w.csv = "ecc.errors." + sort.ours + "." + span.element + "." + place.ours
				}
				out = append(out, w)
			}
		}
		for _, check := range []string{"parity", "secded"} {
			out = append(out, row{
				ours:   "gpu_ecc_sram_uncorrected_" + span.ours + "errors_total{gpu_ecc_sram_check=" + check + "}",
				theirs: "ecc_errors/" + span.element + "/sram_uncorrectable_" + check,
				csv:    "ecc.errors.uncorrected." + span.element + ".sram." + check, since: 550,
			})
		}
	}
	for _, unit := range []struct{ ours, csv string }{{"l2", "l2"}, {"sm", "sm"}, {"pcie", "pcie"}, {"microcontroller", "mcu"}, {"other", "other"}} {
		out = append(out, row{
			ours:   "gpu_ecc_sram_unit_lifetime_errors_total{gpu_ecc_sram_unit=" + unit.ours + "}",
			theirs: "ecc_errors/aggregate_uncorrectable_sram_sources/sram_" + unit.ours,
			csv:    "ecc.errors.uncorrected.aggregate.sram." + unit.csv, since: 550,
		})
	}
	return append(out, row{
		ours: "gpu_ecc_sram_threshold_exceeded", theirs: "ecc_errors/aggregate/sram_threshold_exceeded",
		csv: "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded", since: 550,
	})
}

// throttleRows are the causes that hold the clocks down, and for how long they have. The elements
// had another name before R535.
func throttleRows() []row {
	var out []row
	for _, cause := range []struct{ ours, theirs, time string }{ // time: where there is one
		{"sw_power_cap", "sw_power_cap", "sw_power_cap"},
		{"hw_slowdown", "hw_slowdown", ""},
		{"sync_boost", "sync_boost", "sync_boost"},
		{"sw_thermal", "sw_thermal_slowdown", "sw_therm_slowdown"},
		{"hw_thermal", "hw_thermal_slowdown", "hw_therm_slowdown"},
		{"hw_power_brake", "hw_power_brake_slowdown", "hw_power_brake"},
		{"applications_clocks", "applications_clocks_setting", ""},
		{"display_clocks", "display_clocks_setting", ""},
	} {
		w := row{
			ours:   "gpu_throttle_reason{gpu_throttle_cause=" + cause.ours + "}",
			theirs: "clocks_event_reasons/clocks_event_reason_" + cause.theirs + "|clocks_throttle_reasons/clocks_throttle_reason_" + cause.theirs,
		}
		if cause.ours != "display_clocks" { // the one that CSV has not
			w.csv = "clocks_event_reasons." + cause.theirs
		}
		out = append(out, w)
		if cause.time != "" {
			out = append(out, row{
				ours:   "gpu_throttle_time_seconds_total{gpu_throttle_cause=" + cause.ours + "}",
				theirs: "clocks_event_reasons_counters/clocks_event_reasons_counters_" + cause.time,
				csv:    "clocks_event_reasons_counters." + cause.theirs, abs: .1, since: 575,
			})
		}
	}
	return out
}
