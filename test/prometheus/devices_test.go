package prometheus

import (
	"fmt"
	"time"
)

const trainPod = "train-0"

var sickDevice = map[string]string{"instance": sickNode, "gpu_uuid": sickGPU}

func infrastructureAlerts() []*scenario {
	return []*scenario{
		{
			alert: "GPUTemperatureWarning", held: 5 * time.Minute, about: sickDevice, pod: trainPod,
			page: devices(func(d device) { d.gauge("gpu_temperature_margin_celsius", levels{30, 5, 4, 4}) }),
		},
		{
			alert: "GPUTemperatureCritical", held: 2 * time.Minute, about: sickDevice, pod: trainPod,
			page: devices(func(d device) {
				d.gauge("gpu_temperature_limit_celsius", levels{87, 87, 87, 87}, "gpu_temperature_limit_type", "slowdown")
				d.gauge("gpu_temperature_celsius", levels{60, 86, 87, 87}, "gpu_temperature_sensor", "core")
			}),
		},
		{
			// The share of ten minutes: half an hour of it is told of once nine of the ten are idle too.
			alert: "GPUIdleWaste", held: 30 * time.Minute, about: sickDevice, pod: trainPod,
			window: 10 * time.Minute, sick: mean(10*time.Minute, 1, 0, 0.05), above: mean(10*time.Minute, 1, 0.049, 0.05),
			page: devices(func(d device) {
				for name, perSecond := range map[string]levels{
					"gpu_workload_allocated_time_seconds_total": {1, 1, 1, 1},
					"gpu_workload_busy_time_seconds_total":      {1, 0.051, 0, 0.049},
				} {
					d.work(name, func(pod int, ended bool) float64 {
						if ended || pod > 0 && d.tick == pod*d.every { // it begins at 0
							return 0
						}
						return perSecond[d.level] * interval.Seconds()
					})
				}
			}),
			alive: "nobody wastes it then",
		},
		{
			alert: "GPUMemoryPressure", held: 10 * time.Minute, about: sickDevice, pod: trainPod, window: 10 * time.Minute,
			page: devices(func(d device) {
				d.gauge("gpu_memory_limit_bytes", levels{80e9, 80e9, 80e9, 80e9})
				d.gauge("gpu_memory_usage_bytes", levels{40e9, 0.9699 * 80e9, 0.9701 * 80e9, 0.9701 * 80e9})
				if pod, there := d.now(); d.sick && there {
					d.add(levels{0, 3, 3, 3}[d.level], "inference_preemptions_total", "instance", sickNode, "inference_engine", "vllm",
						"inference_model", sickModel, "k8s_namespace_name", "ml", "k8s_pod_name", fmt.Sprint("train-", pod))
				}
			}),
			alive: "its memory goes with it",
		},
		{
			alert: "GPUECCUncorrectableErrors", about: sickDevice, pod: trainPod, window: 15 * time.Minute, event: true, victim: true,
			page: devices(func(d device) {
				for _, name := range []string{"corrected", "uncorrected"} {
					by := levels{0, 0, 1, 1}
					if name == "corrected" {
						by = levels{0, 5, 0, 0}
					}
					d.once("gpu_ecc_errors_total", by, "gpu_ecc_error_type", name)
					d.suffered("gpu_workload_ecc_errors_total", by, "gpu_ecc_error_type", name)
				}
			}),
		},
		{
			alert: "GPUXIDErrors", about: sickDevice, pod: trainPod, window: 15 * time.Minute, event: true, victim: true,
			page: xids(map[string]levels{"reset": {0, 0, 1, 1}, "application": {0, 1, 0, 0}, "unknown": {0, 1, 0, 0}}),
		},
		{
			alert: "GPUThrottling", held: 10 * time.Minute, about: sickDevice, pod: trainPod,
			window: 5 * time.Minute, sick: mean(5*time.Minute, 0, 1, 0.1), above: mean(5*time.Minute, 0, 0.11, 0.1),
			page: devices(func(d device) {
				d.count("gpu_throttle_time_seconds_total", levels{0, 0.099, 1, 0.11}, "gpu_throttle_cause", "sw_thermal")
				d.count("gpu_throttle_time_seconds_total", levels{1, 1, 1, 1}, "gpu_throttle_cause", "sw_power_cap")
			}),
		},
		{
			alert: "GPUPCIeReplays", held: 15 * time.Minute, about: sickDevice, pod: trainPod,
			window: 15 * time.Minute, sick: mean(15*time.Minute, 0, 5, 0.1), above: mean(15*time.Minute, 0, 0.11, 0.1),
			page: devices(func(d device) {
				d.count("gpu_link_errors_total", levels{0, 0.099, 5, 0.11}, "gpu_link_type", "pcie", "gpu_link_error_type", "replay")
				d.count("gpu_link_errors_total", levels{1, 1, 1, 1}, "gpu_link_type", "nvlink", "gpu_link_error_type", "replay")
			}),
		},
	}
}

// xids happen at the onset, by what they ask for.
func xids(actions map[string]levels) func(*scene) {
	return devices(func(d device) {
		for action, by := range actions {
			d.once("gpu_xid_events_total", by, "gpu_xid_action", action)
			d.suffered("gpu_workload_xid_events_total", by, "gpu_xid_action", action)
		}
	})
}

func fleetAlerts() []*scenario {
	return []*scenario{
		{
			// Eight devices: two are a quarter, and one is an eighth.
			alert: "FleetIdleGPUs", held: 30 * time.Minute,
			window: 10 * time.Minute, sick: mean(10*time.Minute, 1, 0, 0.05), above: mean(10*time.Minute, 1, 0.049, 0.05),
			page: devices(func(d device) {
				if d.uuid == "GPU-5" && d.scene.level != under {
					d.level = d.scene.level
				}
				d.count("gpu_busy_time_seconds_total", levels{1, 0, 0, 0.049})
			}),
		},
		{
			alert: "GPULowHealthScore", held: 5 * time.Minute, about: sickDevice, pod: trainPod,
			page: devices(func(d device) { d.gauge("gpu_health_score_ratio", levels{1, 0.5, 0.49, 0.49}) }),
		},
		{
			alert: "FleetECCErrorRate", held: 10 * time.Minute, about: sickDevice, pod: trainPod,
			window: time.Hour, sick: mean(time.Hour, 0, 1200, 10), above: mean(time.Hour, 0, 11, 10),
			page: devices(func(d device) {
				d.count("gpu_ecc_errors_total", levels{0, 9.9 / 3600, 1200. / 3600, 11. / 3600}, "gpu_ecc_error_type", "corrected")
			}),
		},
	}
}

func extraAlerts() []*scenario {
	const minutes10 = 10 * time.Minute
	return []*scenario{
		{
			alert: "GpumeterDown", held: 5 * time.Minute, about: map[string]string{"instance": sickNode},
			page: func(c *scene) {
				up := levels{1, 1, 0, 0}[c.level]
				devices(func(d device) { d.gauge("gpu_up", levels{1, 1, 1, 1}) })(c)
				for key, s := range c.page {
					if up == 0 && s.labels.Get("instance") == sickNode {
						delete(c.page, key)
					}
				}
				c.put(up, "up", "instance", sickNode)
				c.put(1, "up", "instance", "node-b")
			},
		},
		{
			alert: "GpumeterSourceFailing", held: minutes10, about: map[string]string{"instance": sickNode, "gpumeter_source": "nvml"},
			page: func(c *scene) {
				for _, node := range []string{sickNode, "node-b"} {
					at := healthy
					if node == sickNode {
						at = c.level
					}
					for state, is := range map[string]levels{"failed": {0, 0, 1, 1}, "absent": {0, 1, 0, 0}, "serving": {1, 0, 0, 0}} {
						c.put(is[at], "gpumeter_source_state", "instance", node, "gpumeter_source", "nvml", "gpumeter_source_state", state)
						c.put(is[healthy], "gpumeter_source_state", "instance", node, "gpumeter_source", "host", "gpumeter_source_state", state)
					}
				}
			},
		},
		{
			// Of the two scrapes that a rate needs the window loses the second but one nine minutes after the onset.
			alert: "GpumeterMetricsAbsent", held: 15 * time.Minute, window: minutes10, sick: minutes10 - 2*interval,
			past: 24*time.Hour + minutes10,
			page: devices(func(d device) {
				d.gauge("gpu_up", levels{1, 1, 1, 1})
				tells := d.scene.level == healthy || d.scene.level == under && d.uuid == "GPU-7"
				if tells {
					d.count("gpu_busy_time_seconds_total", levels{1, 1, 1, 1})
				}
			}),
		},
		{
			alert: "GPUMissing", held: 5 * time.Minute, about: sickDevice, pod: trainPod,
			page: devices(func(d device) {
				d.states("gpu_state", "gpu_state", []string{"ok", "released", "lost", "lost"}[d.level], "ok", "missing", "lost", "released")
			}),
		},
		{
			alert: "GPURecoveryNeeded", about: sickDevice, pod: trainPod,
			page: devices(func(d device) {
				d.states("gpu_recovery_action", "gpu_recovery_action", []string{"none", "none", "reset", "reset"}[d.level], "none", "reset", "reboot")
			}),
		},
		{
			alert: "GPURowRemapFailure", about: sickDevice, pod: trainPod,
			page: devices(func(d device) {
				d.gauge("gpu_row_remap_failure", levels{0, 0, 1, 1})
				d.gauge("gpu_row_remap_pending", levels{0, 1, 1, 1})
			}),
		},
		{
			alert: "GPUNVLinkErrors", held: minutes10, about: sickDevice, pod: trainPod,
			window: minutes10, sick: mean(minutes10, 0, 1, 0.01), above: mean(minutes10, 0, 0.011, 0.01),
			page: devices(func(d device) {
				for i, at := range []levels{{0, 0.0099, 1, 0.011}, {}} {
					d.count("gpu_link_errors_total", at, "gpu_link_type", "nvlink", "gpu_link_id", fmt.Sprint(i), "gpu_link_error_type", "recovery")
					d.count("gpu_link_errors_total", levels{1, 1, 1, 1}, "gpu_link_type", "nvlink", "gpu_link_id", fmt.Sprint(i), "gpu_link_error_type", "replay")
				}
			}),
		},
		{
			alert: "GPUNVLinkDown", held: 5 * time.Minute, about: sickDevice, pod: trainPod,
			page: devices(func(d device) {
				d.gauge("gpu_link_up", levels{1, 0, 0, 0}, "gpu_link_type", "nvlink", "gpu_link_id", "0")
				d.gauge("gpu_link_up", levels{1, 0, 1, 1}, "gpu_link_type", "nvlink", "gpu_link_id", "1")
			}),
		},
		{
			alert: "GPUXIDApplication", about: sickDevice, pod: trainPod, window: 15 * time.Minute, event: true, victim: true,
			page: xids(map[string]levels{"application": {0, 0, 1, 1}, "reset": {0, 1, 0, 0}, "unknown": {0, 1, 0, 0}}),
		},
	}
}
