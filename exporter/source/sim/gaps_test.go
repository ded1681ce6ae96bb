package sim

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// What only some of NVIDIA's boards tell, by what they must have for it.
const (
	ofNVIDIA = "gpu.accounting.enabled gpu.capture.sessions gpu.encoder.sessions gpu.compute.mode gpu.display.active gpu.firmware.info gpu.memory.bar1.limit " +
		"gpu.memory.bar1.usage gpu.memory.protected.limit gpu.memory.protected.usage gpu.memory.reserved " +
		"gpu.performance.state gpu.persistence.enabled gpu.platform.info gpu.power.instant gpu.power.peak " +
		"gpu.ecc.sram.threshold.exceeded gpu.ecc.sram.uncorrected.errors gpu.ecc.sram.uncorrected.lifetime.errors " +
		"gpu.ecc.sram.unit.lifetime.errors gpu.recovery.action gpu.throttle.policy.time gpu.throttle.reason gpu.throttle.time gpu.xid.errors gpu.xid.events gpu.xid.last_seen.timestamp "
	ofHopper = "gpu.c2c.enabled gpu.confidential_compute.enabled gpu.fabric.error gpu.fabric.info gpu.fabric.state " +
		"gpu.gr_engine.active gpu.gr_engine.active.time gpu.sm.active gpu.sm.active.time gpu.sm.occupancy gpu.pipe.active " +
		"gpu.pipe.active.time gpu.dram.active gpu.dram.active.time gpu.repair.pending "
	ofBlackwell = "gpu.fabric.fault gpu.fabric.health "
	ofMIG       = "gpu.mig.enabled "
	ofSwitches  = "gpu.fabric.links "
	ofSpareRows = "gpu.row_remap.banks gpu.row_remap.failure gpu.row_remap.pending gpu.row_remap.rows "
	ofECC       = "gpu.ecc.errors "
	ofLocations = "gpu.ecc.location.errors gpu.ecc.location.lifetime.errors "
	ofECCMode   = "gpu.ecc.enabled gpu.ecc.lifetime.errors "
	ofMargin    = "gpu.temperature.margin gpu.temperature.margin.limit "
	ofWhole     = "gpu.busy.time gpu.utilization gpu.memory.controller.utilization gpu.media.utilization " + // boards that are not split
		"gpu.row_remap.failure gpu.row_remap.pending gpu.row_remap.rows "
	ofFans   = "gpu.fan.rotation.frequency gpu.fan.speed "
	ofFilms  = "gpu.encoder.frame.rate gpu.encoder.latency " // while some are made
	ofClock  = "gpu.clock.application "
	ofLimits = "gpu.temperature.limit "
)

// gaps are the metrics a board of a model does not have at all, and some of those it has in part.
var gaps = map[string]struct{ lacks, has string }{
	"h100": {ofFans + ofFilms + ofBlackwell + ofLimits,
		`gpu.temperature{gpu_temperature_sensor="memory"} gpu.temperature.margin{} gpu.ecc.lifetime.errors{gpu_ecc_error_type="corrected"} gpu.xid.errors{gpu_xid="94"} gpu.ecc.location.errors{gpu_ecc_error_type="corrected",gpu_ecc_location="sram"} -gpu.ecc.location.errors{gpu_ecc_error_type="corrected",gpu_ecc_location="l2_cache"} gpu.row_remap.banks{gpu_row_remap_availability="max"} gpu.power.instant{gpu_power_domain="device"} -gpu.power.instant{gpu_power_domain="memory"} gpu.temperature.margin.limit{gpu_temperature_limit_type="memory_max"} gpu.clock.application{gpu_clock_type="graphics"} -gpu.clock.application{gpu_clock_type="video"} gpu.throttle.time{gpu_throttle_cause="sw_power_cap"} -gpu.throttle.time{gpu_throttle_cause="hw_slowdown"}`},
	"h100mig": {ofFans + ofFilms + ofBlackwell + ofLimits + ofWhole,
		`gpu.mig.enabled{gpu_mode_phase="current"} gpu.row_remap.banks{gpu_row_remap_availability="max"} gpu.gr_engine.active{} gpu.energy{} gpu.memory.usage{} gpu.encoder.sessions{} gpu.accounting.enabled{}`},
	"h200": {ofFans + ofFilms + ofBlackwell + ofLimits, `gpu.temperature{gpu_temperature_sensor="memory"}`},
	"b200": {ofFans + ofFilms + ofLimits,
		`gpu.temperature{gpu_temperature_sensor="memory"} gpu.fabric.fault{gpu_fabric_fault="access_timeout"} -gpu.fabric.fault{gpu_fabric_fault="route_unhealthy"}`},
	"a100": {ofFans + ofFilms + ofHopper + ofBlackwell + ofMargin, `gpu.temperature.limit{gpu_temperature_limit_type="memory_max"} gpu.temperature{gpu_temperature_sensor="memory"}`},
	"l40s": {ofFans + ofClock + ofHopper + ofBlackwell + ofMIG + ofSwitches + ofLimits, `gpu.temperature.margin{} gpu.temperature.margin.limit{gpu_temperature_limit_type="core_max"} -gpu.temperature.margin.limit{gpu_temperature_limit_type="memory_max"} gpu.ecc.enabled{gpu_mode_phase="current"} -gpu.temperature{gpu_temperature_sensor="memory"}`},
	"rtx4090": {ofFilms + ofClock + ofHopper + ofBlackwell + ofMIG + ofSwitches + ofSpareRows + ofECC + ofECCMode + ofLocations + ofMargin,
		`gpu.energy{} gpu.temperature.limit{gpu_temperature_limit_type="slowdown"} -gpu.temperature.limit{gpu_temperature_limit_type="memory_max"} -gpu.temperature{gpu_temperature_sensor="memory"} -gpu.xid.errors{gpu_xid="63"} -gpu.xid.errors{gpu_xid="94"}`},
	"mi300x": {ofFans + ofFilms + ofNVIDIA + ofClock + ofHopper + ofBlackwell + ofMIG + ofSwitches + ofSpareRows + ofECCMode + ofLocations + ofMargin + "gpu.throttle.active",
		`gpu.ecc.errors{gpu_ecc_error_type="corrected"} gpu.memory.free{} -gpu.clock.frequency{gpu_clock_type="sm"} -gpu.power.limit{gpu_power_limit_type="requested"}`},
	"gaudi3": {ofFans + ofFilms + ofNVIDIA + ofClock + ofHopper + ofBlackwell + ofMIG + ofSwitches + ofSpareRows + ofLocations + ofMargin +
		"gpu.clock.frequency gpu.clock.limit gpu.media.utilization gpu.memory.controller.utilization",
		`gpu.throttle.active{gpu_throttle_bucket="power"} -gpu.throttle.active{gpu_throttle_bucket="hw"} -gpu.temperature{gpu_temperature_sensor="memory"}`},
}

func TestGapsAreThoseOfTheModel(t *testing.T) {
	if got, want := slices.Sorted(maps.Keys(gaps)), slices.Sorted(slices.Values(modelIDs())); !slices.Equal(got, want) {
		t.Errorf("gaps of %v, models are %v", got, want)
	}
	for id, want := range gaps {
		c, devices := start(t, id+"x1", 1)
		c.moveTo(longEnough)
		metrics, told := map[string]bool{}, map[string]bool{}
		everyNumber(read(t, devices[0]), func(s series, _ float64) { metrics[s.desc.Name], told[s.String()] = true, true })
		var lacks []string
		for _, f := range telemetry.DeviceFamilies {
			if slices.Contains(f.Desc.Sources, "sim") && !metrics[f.Desc.Name] {
				lacks = append(lacks, f.Desc.Name)
			}
		}
		slices.Sort(lacks)
		if want := slices.Sorted(strings.FieldsSeq(want.lacks)); !slices.Equal(lacks, want) {
			t.Errorf("%s lacks %s\nwant %s", id, lacks, want)
		}
		for s := range strings.FieldsSeq(want.has) {
			s, not := strings.CutPrefix(s, "-")
			if told[s] == not {
				t.Errorf("%s gives %s: %v", id, s, told[s])
			}
		}
	}
}
