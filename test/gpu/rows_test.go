package gpu

import (
	"strings"
)

// row is one value that both tell.
type row struct {
	ours   string // a selector of our page
	theirs string // paths in nvidia-smi's XML, divided by bars: the first that has an answer counts
	csv    string // the same of --query-gpu

	// A value that moves may be beyond what nvidia-smi said before and after by so much; one that
	// does not must be what it said, as finely as it says it.
	abs, rel float64

	word  bool                // compared as text, else as a number
	as    func(string) string // makes our word of theirs; empty: none
	zero  string              // the one word that is 0; any other is 1
	scale float64             // makes our number of theirs, where it has no unit; 0: 1
	when  string              // PATH or PATH=TEXT: compared only where that is told, is not 0, and is so
	since int                 // the first driver we read it from; an older one may tell nvidia-smi alone
	lax   bool                // nvidia-smi may have no answer where we have
	sure  bool                // what nvidia-smi does not mention, we must not have
}

// sources are where nvidia-smi tells the value.
func (w row) sources() []string {
	var out []string
	if w.theirs != "" {
		out = append(out, w.theirs)
	}
	if w.csv != "" {
		out = append(out, "csv:"+w.csv)
	}
	return out
}

// rows are all values that both tell of a GPU, but for its partitions and processes.
func rows() []row {
	var out []row
	for _, part := range [][]row{identity, firmware, modes, memory, power, clocks, heat, use, links, repair, fabric} {
		out = append(out, part...)
	}
	for _, part := range []func() []row{bankRows, errorRows, throttleRows} {
		out = append(out, part()...)
	}
	return out
}

// Slack of values that move.
const (
	mebi      = 1 << 20
	megahertz = 1e6
)

var identity = []row{
	{ours: "gpu_info@gpu_uuid", theirs: "uuid", word: true, sure: true},
	{ours: "gpu_info@gpu_index", csv: "index", word: true},
	{ours: "gpu_info@gpu_model", theirs: "product_name", csv: "name", word: true},
	{ours: "gpu_info@gpu_serial", theirs: "serial", csv: "serial", word: true},
	{ours: "gpu_info@gpu_part_number", theirs: "board_part_number", word: true},
	{ours: "gpu_info@gpu_architecture", theirs: "product_architecture", word: true, as: first},
	{ours: "gpu_info@gpu_compute_capability", csv: "compute_cap", word: true},
	{ours: "gpu_info@gpu_pci_address", theirs: "pci/pci_bus_id", csv: "pci.bus_id", word: true, as: pciAddress},
	{ours: "gpu_info@gpu_driver_version", theirs: "kmd_version|driver_version", csv: "driver_version", word: true},
	{ours: "gpu_info@gpu_cuda_version", theirs: "cuda_umd_version|cuda_version", word: true, lax: true}, // nvidia-smi asks libcuda
	{ours: "gpu_platform_info@gpu_minor", theirs: "minor_number", word: true},
	{ours: "gpu_platform_info@gpu_module", theirs: "platformInfo/module_id|gpu_module_id", csv: "platform.module_id", word: true, since: 535},
	{ours: "gpu_platform_info@gpu_chassis_serial", theirs: "platformInfo/chassis_serial_number", word: true},
	{ours: "gpu_platform_info@gpu_chassis_slot", theirs: "platformInfo/slot_number", word: true, when: "platformInfo/chassis_serial_number"},
	{ours: "gpu_platform_info@gpu_chassis_tray", theirs: "platformInfo/tray_index", word: true, when: "platformInfo/chassis_serial_number"},
	{ours: "gpu_platform_info@gpu_chassis_host", theirs: "platformInfo/host_id", word: true, when: "platformInfo/chassis_serial_number"},
	{ours: "gpu_platform_info@gpu_platform_guid", theirs: "platformInfo/gpu_fabric_guid", word: true, as: guid},
	{ours: "gpu_platform_info@gpu_virtualization", theirs: "gpu_virtualization_mode/virtualization_mode", word: true, as: virtualization},
}

var firmware = []row{
	{ours: "gpu_info@gpu_firmware_version", theirs: "vbios_version", csv: "vbios_version", word: true},
	{ours: "gpu_firmware_info@gpu_brand", theirs: "product_brand", word: true, as: snake},
	{ours: "gpu_firmware_info@gpu_inforom_version", theirs: "inforom_version/img_version", csv: "inforom.img", word: true},
	{ours: "gpu_firmware_info@gpu_inforom_oem", theirs: "inforom_version/oem_object", csv: "inforom.oem", word: true},
	{ours: "gpu_firmware_info@gpu_inforom_ecc", theirs: "inforom_version/ecc_object", csv: "inforom.ecc", word: true},
	{ours: "gpu_firmware_info@gpu_inforom_power", theirs: "inforom_version/pwr_object", csv: "inforom.pwr", word: true},
	{ours: "gpu_firmware_info@gpu_gsp_version", theirs: "gsp_firmware_version", word: true, since: 515},
	{ours: "gpu_firmware_info@gpu_gsp_mode", csv: "gsp.mode.current", word: true, as: onOff, since: 515},
	{ours: "gpu_firmware_info@gpu_pdi", theirs: "pdi", word: true, as: strings.ToLower},
}

var modes = []row{
	{ours: "gpu_performance_state", theirs: "performance_state", csv: "pstate", abs: .5},
	{ours: "gpu_persistence_enabled", theirs: "persistence_mode", csv: "persistence_mode"},
	{ours: "gpu_display_active", theirs: "display_active", csv: "display_active"},
	{ours: "gpu_accounting_enabled", theirs: "accounting_mode", csv: "accounting.mode"},
	{ours: "gpu_compute_mode?gpu_compute_mode", theirs: "compute_mode", csv: "compute_mode", word: true, as: snake},
	{ours: "gpu_c2c_enabled", theirs: "c2c_mode", csv: "c2c.mode", since: 545},
	{ours: "gpu_mig_enabled{gpu_mode_phase=current}", theirs: "mig_mode/current_mig", csv: "mig.mode.current"},
	{ours: "gpu_mig_enabled{gpu_mode_phase=pending}", theirs: "mig_mode/pending_mig", csv: "mig.mode.pending"},
	{ours: "gpu_ecc_enabled{gpu_mode_phase=current}", theirs: "ecc_mode/current_ecc", csv: "ecc.mode.current"},
	{ours: "gpu_ecc_enabled{gpu_mode_phase=pending}", theirs: "ecc_mode/pending_ecc", csv: "ecc.mode.pending"},
}

var memory = []row{
	{ours: "gpu_memory_limit_bytes", theirs: "fb_memory_usage/total", csv: "memory.total"},
	// Where nvidia-smi has no reserved, used includes it.
	{ours: "gpu_memory_usage_bytes", theirs: "fb_memory_usage/used", csv: "memory.used", abs: 16 * mebi, when: "fb_memory_usage/reserved"},
	{ours: "gpu_memory_free_bytes", theirs: "fb_memory_usage/free", csv: "memory.free", abs: 16 * mebi},
	{ours: "gpu_memory_reserved_bytes", theirs: "fb_memory_usage/reserved", csv: "memory.reserved", abs: 2 * mebi},
	{ours: "gpu_memory_bar1_limit_bytes", theirs: "bar1_memory_usage/total"},
	{ours: "gpu_memory_bar1_usage_bytes", theirs: "bar1_memory_usage/used", abs: 4 * mebi},
	{ours: "gpu_memory_protected_limit_bytes", theirs: "cc_protected_memory_usage/total", csv: "protected_memory.total", since: 535},
	{ours: "gpu_memory_protected_usage_bytes", theirs: "cc_protected_memory_usage/used", csv: "protected_memory.used", abs: 16 * mebi, since: 535},
}

var power = []row{
	// Boards without an average have the instant at the same call.
	{ours: "gpu_power_draw_watts", theirs: readings("average_power_draw") + "|" + readings("instant_power_draw") + "|" + readings("power_draw"), csv: "power.draw", abs: 5, rel: .1},
	{ours: "gpu_power_instant_watts{gpu_power_domain=device}", theirs: readings("instant_power_draw"), csv: "power.draw.instant", abs: 20, rel: .25, since: 535},
	{ours: "gpu_power_instant_watts{gpu_power_domain=module}", theirs: "module_power_readings/instant_power_draw", csv: "module.power.draw.instant", abs: 40, rel: .25, since: 535},
	{ours: "gpu_power_instant_watts{gpu_power_domain=memory}", theirs: "gpu_memory_power_readings/instant_power_draw", abs: 20, rel: .25, since: 535},
	{ours: "gpu_power_average_watts{gpu_power_domain=module}", theirs: "module_power_readings/average_power_draw", csv: "module.power.draw.average", abs: 20, rel: .15, since: 535},
	{ours: "gpu_power_average_watts{gpu_power_domain=memory}", theirs: "gpu_memory_power_readings/average_power_draw", abs: 10, rel: .15, since: 535},
	{ours: "gpu_power_limit_watts{gpu_power_limit_type=enforced}", theirs: readings("current_power_limit") + "|" + readings("enforced_power_limit"), csv: "enforced.power.limit", since: 535},
	{ours: "gpu_power_limit_watts{gpu_power_limit_type=requested}", theirs: readings("requested_power_limit") + "|" + readings("power_limit"), csv: "power.limit", since: 535},
	{ours: "gpu_power_limit_watts{gpu_power_limit_type=default}", theirs: readings("default_power_limit"), csv: "power.default_limit", since: 535},
	{ours: "gpu_power_limit_watts{gpu_power_limit_type=min}", theirs: readings("min_power_limit"), csv: "power.min_limit", since: 535},
	{ours: "gpu_power_limit_watts{gpu_power_limit_type=max}", theirs: readings("max_power_limit"), csv: "power.max_limit", since: 535},
	{ours: "gpu_power_edpp_multiplier_ratio", theirs: "edpp_multiplier", csv: "edpp_multiplier", since: 590},
}

// readings is an element of the GPU's power readings, by its name of today and of before R535.
func readings(name string) string { return "gpu_power_readings/" + name + "|power_readings/" + name }

var clocks = []row{
	{ours: "gpu_clock_frequency_hertz{gpu_clock_type=graphics}", theirs: "clocks/graphics_clock", csv: "clocks.current.graphics", abs: 15 * megahertz, rel: .1},
	{ours: "gpu_clock_frequency_hertz{gpu_clock_type=sm}", theirs: "clocks/sm_clock", csv: "clocks.current.sm", abs: 15 * megahertz, rel: .1},
	{ours: "gpu_clock_frequency_hertz{gpu_clock_type=memory}", theirs: "clocks/mem_clock", csv: "clocks.current.memory", abs: 15 * megahertz, rel: .1},
	{ours: "gpu_clock_frequency_hertz{gpu_clock_type=video}", theirs: "clocks/video_clock", csv: "clocks.current.video", abs: 15 * megahertz, rel: .1},
	{ours: "gpu_clock_limit_hertz{gpu_clock_type=graphics}", theirs: "max_clocks/graphics_clock", csv: "clocks.max.graphics"},
	{ours: "gpu_clock_limit_hertz{gpu_clock_type=sm}", theirs: "max_clocks/sm_clock", csv: "clocks.max.sm"},
	{ours: "gpu_clock_limit_hertz{gpu_clock_type=memory}", theirs: "max_clocks/mem_clock", csv: "clocks.max.memory"},
	{ours: "gpu_clock_limit_hertz{gpu_clock_type=video}", theirs: "max_clocks/video_clock"},
	{ours: "gpu_clock_application_hertz{gpu_clock_type=graphics}", theirs: "applications_clocks/graphics_clock", csv: "clocks.applications.graphics"},
	{ours: "gpu_clock_application_hertz{gpu_clock_type=memory}", theirs: "applications_clocks/mem_clock", csv: "clocks.applications.memory"},
}

var heat = []row{
	{ours: "gpu_temperature_celsius{gpu_temperature_sensor=core}", theirs: "temperature/gpu_temp", csv: "temperature.gpu", abs: 2},
	{ours: "gpu_temperature_celsius{gpu_temperature_sensor=memory}", theirs: "temperature/memory_temp", csv: "temperature.memory", abs: 2},
	{ours: "gpu_temperature_margin_celsius", theirs: "temperature/gpu_temp_tlimit", csv: "temperature.gpu.tlimit", abs: 2, since: 570},
	{ours: "gpu_temperature_limit_celsius{gpu_temperature_limit_type=shutdown}", theirs: "temperature/gpu_temp_max_threshold"},
	{ours: "gpu_temperature_limit_celsius{gpu_temperature_limit_type=slowdown}", theirs: "temperature/gpu_temp_slow_threshold"},
	{ours: "gpu_temperature_limit_celsius{gpu_temperature_limit_type=core_max}", theirs: "temperature/gpu_temp_max_gpu_threshold"},
	{ours: "gpu_temperature_limit_celsius{gpu_temperature_limit_type=memory_max}", theirs: "temperature/gpu_temp_max_mem_threshold"},
	{ours: "gpu_temperature_margin_limit_celsius{gpu_temperature_limit_type=shutdown}", theirs: "temperature/gpu_temp_max_tlimit_threshold", since: 535},
	{ours: "gpu_temperature_margin_limit_celsius{gpu_temperature_limit_type=slowdown}", theirs: "temperature/gpu_temp_slow_tlimit_threshold", since: 535},
	{ours: "gpu_temperature_margin_limit_celsius{gpu_temperature_limit_type=core_max}", theirs: "temperature/gpu_temp_max_gpu_tlimit_threshold", since: 535},
	{ours: "gpu_temperature_margin_limit_celsius{gpu_temperature_limit_type=memory_max}", theirs: "temperature/gpu_temp_max_mem_tlimit_threshold", since: 535},
	{ours: "gpu_fan_speed_ratio{gpu_fan=0}", theirs: "fan_speed", csv: "fan.speed", abs: .05, since: 510},
}

var use = []row{
	{ours: "gpu_utilization_ratio", theirs: "utilization/gpu_util", csv: "utilization.gpu", abs: .1},
	{ours: "gpu_memory_controller_utilization_ratio", theirs: "utilization/memory_util", csv: "utilization.memory", abs: .1},
	{ours: "gpu_media_utilization_ratio{gpu_media_engine=encoder}", theirs: "utilization/encoder_util", csv: "utilization.encoder", abs: .1},
	{ours: "gpu_media_utilization_ratio{gpu_media_engine=decoder}", theirs: "utilization/decoder_util", csv: "utilization.decoder", abs: .1},
	{ours: "gpu_media_utilization_ratio{gpu_media_engine=jpeg}", theirs: "utilization/jpeg_util", csv: "utilization.jpeg", abs: .1, since: 535},
	{ours: "gpu_media_utilization_ratio{gpu_media_engine=ofa}", theirs: "utilization/ofa_util", csv: "utilization.ofa", abs: .1, since: 535},
	{ours: "gpu_encoder_sessions", theirs: "encoder_stats/session_count", csv: "encoder.stats.sessionCount"},
	{ours: "gpu_encoder_frame_rate_hertz", theirs: "encoder_stats/average_fps", csv: "encoder.stats.averageFps", rel: .2, when: "encoder_stats/session_count"},
	{ours: "gpu_encoder_latency_seconds", theirs: "encoder_stats/average_latency", csv: "encoder.stats.averageLatency", scale: 1e-6, rel: .5, when: "encoder_stats/session_count"},
	{ours: "gpu_capture_sessions", theirs: "fbc_stats/session_count"},
	{ours: "gpu_capture_frame_rate_hertz", theirs: "fbc_stats/average_fps", rel: .2, when: "fbc_stats/session_count"},
	{ours: "gpu_capture_latency_seconds", theirs: "fbc_stats/average_latency", scale: 1e-6, rel: .5, when: "fbc_stats/session_count"},
}

// first is the first word, in small letters: ada of Ada Lovelace.
func first(s string) string {
	word, _, _ := strings.Cut(strings.ToLower(s), " ")
	return word
}

// snake is exclusive_process of Exclusive_Process, and drain_and_reset of Drain and Reset.
func snake(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "_") }

// pciAddress is 0000:1a:00.0 of 00000000:1A:00.0.
func pciAddress(s string) string { return strings.ToLower(strings.TrimPrefix(s, "0000")) }

func guid(s string) string {
	if strings.Trim(s, "0x") == "" {
		return ""
	}
	return strings.ToLower(s)
}

func virtualization(s string) string {
	words := map[string]string{"None": "", "Pass-Through": "passthrough", "Host VGPU": "host_vgpu", "Host VSGA": "host_vsga"}
	if w, ok := words[s]; ok {
		return w
	}
	return snake(s)
}

func onOff(s string) string {
	switch s {
	case "Enabled":
		return "on"
	case "Disabled":
		return "off"
	}
	return s
}
