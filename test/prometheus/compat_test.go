package prometheus

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
)

// field is one of dcgm-exporter's as NVIDIA documents it, made here from what the device itself says and
// not from the spec, which is what is tested.
type field struct {
	old, new string  // its name up to 4.8, and from 4.9 on
	of       string  // where the number is on our page
	labels   string  // which of its series
	unit     float64 // ours in one of theirs, up to 4.8
	since    float64 // and from 4.9 on
	whole    bool    // up to 4.8 it has no fraction
}

var fields = []field{
	{old: "DCGM_FI_DEV_SM_CLOCK", new: "DCGM_FI_DEV_SM_CLOCK_HERTZ", of: "gpu_clock_frequency_hertz", labels: `gpu_clock_type="sm"`, unit: 1e6, since: 1, whole: true},
	{old: "DCGM_FI_DEV_MEM_CLOCK", new: "DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", of: "gpu_clock_frequency_hertz", labels: `gpu_clock_type="memory"`, unit: 1e6, since: 1, whole: true},
	{old: "DCGM_FI_DEV_MEMORY_TEMP", new: "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", of: "gpu_temperature_celsius", labels: `gpu_temperature_sensor="memory"`, unit: 1, since: 1, whole: true},
	{old: "DCGM_FI_DEV_GPU_TEMP", new: "DCGM_FI_DEV_GPU_TEMP_CELSIUS", of: "gpu_temperature_celsius", labels: `gpu_temperature_sensor="core"`, unit: 1, since: 1, whole: true},
	{old: "DCGM_FI_DEV_POWER_USAGE", new: "DCGM_FI_DEV_BOARD_POWER_WATTS", of: "gpu_power_draw_watts", unit: 1, since: 1},
	{old: "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", new: "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", of: "gpu_energy_joules_total", unit: 1e-3, since: 1, whole: true},
	{old: "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", new: "DCGM_FI_DEV_PCIE_REPLAY_TOTAL", of: "gpu_link_errors_total", labels: `gpu_link_type="pcie",gpu_link_error_type="replay"`, unit: 1, since: 1, whole: true},
	{old: "DCGM_FI_DEV_GPU_UTIL", new: "DCGM_FI_DEV_GPU_UTIL_RATIO", of: "gpu_utilization_ratio", unit: 0.01, since: 1, whole: true},
	{old: "DCGM_FI_DEV_MEM_COPY_UTIL", new: "DCGM_FI_DEV_MEMORY_UTIL_RATIO", of: "gpu_memory_controller_utilization_ratio", unit: 0.01, since: 1, whole: true},
	{old: "DCGM_FI_DEV_ENC_UTIL", new: "DCGM_FI_DEV_ENC_UTIL_RATIO", of: "gpu_media_utilization_ratio", labels: `gpu_media_engine="encoder"`, unit: 0.01, since: 1, whole: true},
	{old: "DCGM_FI_DEV_DEC_UTIL", new: "DCGM_FI_DEV_DEC_UTIL_RATIO", of: "gpu_media_utilization_ratio", labels: `gpu_media_engine="decoder"`, unit: 0.01, since: 1, whole: true},
	{old: "DCGM_FI_DEV_FB_FREE", new: "DCGM_FI_DEV_FB_FREE_BYTES", of: "gpu_memory_free_bytes", unit: 1 << 20, since: 1, whole: true},
	{old: "DCGM_FI_DEV_FB_USED", new: "DCGM_FI_DEV_FB_USED_BYTES", of: "gpu_memory_usage_bytes", unit: 1 << 20, since: 1, whole: true},
	{old: "DCGM_FI_DEV_FB_RESERVED", new: "DCGM_FI_DEV_FB_RESERVED_BYTES", of: "gpu_memory_reserved_bytes", unit: 1 << 20, since: 1, whole: true},
	{old: "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", new: "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", of: "gpu_row_remap_rows_total", labels: `gpu_ecc_error_type="uncorrected"`, unit: 1, since: 1, whole: true},
	{old: "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", new: "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL", of: "gpu_row_remap_rows_total", labels: `gpu_ecc_error_type="corrected"`, unit: 1, since: 1, whole: true},
	{old: "DCGM_FI_DEV_ROW_REMAP_FAILURE", new: "DCGM_FI_DEV_ROW_REMAP_FAILED", of: "gpu_row_remap_failure", unit: 1, since: 1, whole: true},
	{old: "DCGM_FI_PROF_GR_ENGINE_ACTIVE", new: "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", of: "gpu_gr_engine_active_ratio", unit: 1, since: 1},
	{old: "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", new: "DCGM_FI_PROF_TENSOR_UTIL_RATIO", of: "gpu_pipe_active_ratio", labels: `gpu_pipe="tensor"`, unit: 1, since: 1},
	{old: "DCGM_FI_PROF_DRAM_ACTIVE", new: "DCGM_FI_PROF_DRAM_UTIL_RATIO", of: "gpu_dram_active_ratio", unit: 1, since: 1},
}

// panels are the queries of dcgm-exporter's own dashboard, and those it would have from 4.9 on.
var panels = map[string][]string{
	"4.8": {
		`DCGM_FI_DEV_GPU_TEMP{instance=~".*", gpu=~".*"}`,
		`avg(DCGM_FI_DEV_GPU_TEMP{instance=~".*", gpu=~".*"})`,
		`DCGM_FI_DEV_POWER_USAGE{instance=~".*", gpu=~"0|2"}`,
		`sum(DCGM_FI_DEV_POWER_USAGE{instance=~".*", gpu=~".*"})`,
		`DCGM_FI_DEV_SM_CLOCK{instance=~".*", gpu=~".*"} * 1000000`,
		`DCGM_FI_DEV_GPU_UTIL{instance=~".*", gpu=~".*"}`,
		`DCGM_FI_DEV_FB_USED{instance=~".*", gpu=~".*"}`,
		`DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{instance=~".*", gpu=~".*"}`,
		`group by (instance) (DCGM_FI_DEV_GPU_TEMP)`, // the values of its variables
		`group by (gpu) (DCGM_FI_DEV_GPU_TEMP)`,
	},
	"4.9": {
		`DCGM_FI_DEV_GPU_TEMP_CELSIUS{instance=~".*", gpu=~".*"}`,
		`avg(DCGM_FI_DEV_GPU_TEMP_CELSIUS{instance=~".*", gpu=~".*"})`,
		`DCGM_FI_DEV_BOARD_POWER_WATTS{instance=~".*", gpu=~"0|2"}`,
		`sum(DCGM_FI_DEV_BOARD_POWER_WATTS{instance=~".*", gpu=~".*"})`,
		`DCGM_FI_DEV_SM_CLOCK_HERTZ{instance=~".*", gpu=~".*"}`,
		`DCGM_FI_DEV_GPU_UTIL_RATIO{instance=~".*", gpu=~".*"} * 100`,
		`DCGM_FI_DEV_FB_USED_BYTES{instance=~".*", gpu=~".*"}`,
		`DCGM_FI_PROF_TENSOR_UTIL_RATIO{instance=~".*", gpu=~".*"}`,
		`group by (instance) (DCGM_FI_DEV_GPU_TEMP_CELSIUS)`,
		`group by (gpu) (DCGM_FI_DEV_GPU_TEMP_CELSIUS)`,
	},
}

// Each query of dcgm-exporter's dashboard, and each of its default fields, answers the same from our
// names as from a page of its own for the same node; and boards it does not read are not there.
func TestDCGM(t *testing.T) {
	t.Parallel()
	node := simulate(t, "h100x4,mi300xx1")
	page := node.busy(`(?m)^gpu_utilization_ratio\{.*\} 0\.[1-9]`)
	for dialect, panels := range panels {
		t.Run(dialect, func(t *testing.T) {
			ours := newServer(t, "../../rules/plain/compat/gpumeter-compat-dcgm-"+dialect+".yaml")
			ours.scrape(origin, page, "job", "gpumeter", "instance", "node-1")
			ours.evaluate(origin)
			theirs := newServer(t)
			theirs.scrape(origin, dcgm(ours, dialect), "job", "gpumeter", "instance", "node-1")
			for _, f := range fields {
				panels = append(panels, f.name(dialect))
			}
			for _, query := range panels {
				same(t, query, theirs.query(origin, query), ours.query(origin, query), dialect == "4.8")
			}
		})
	}
}

// same wants the same series with the same numbers, but for what is rounded there.
func same(t *testing.T, query string, want, got promql.Vector, rounded bool) {
	t.Helper()
	numbers := map[string]float64{}
	for _, s := range got {
		numbers[s.Metric.String()] = s.F
	}
	for _, s := range want {
		has, ok := numbers[s.Metric.String()]
		delete(numbers, s.Metric.String())
		unit := 0.0
		if rounded {
			unit = 1
			if strings.HasSuffix(query, "* 1000000") {
				unit = 1e6
			}
			if strings.HasPrefix(query, "sum") {
				unit = 4
			}
		}
		switch {
		case !ok:
			t.Errorf("%s: no series %s", query, s.Metric)
		case math.Abs(has-s.F) > unit/2+1e-9*math.Abs(s.F):
			t.Errorf("%s: %s is %v, there %v", query, s.Metric, has, s.F)
		}
	}
	for _, left := range slices.Sorted(maps.Keys(numbers)) {
		t.Errorf("%s: there is no series %s", query, left)
	}
	if len(want) == 0 {
		t.Errorf("%s: no series there", query)
	}
}

func (f field) name(dialect string) string {
	if dialect == "4.8" {
		return f.old
	}
	return f.new
}

// dcgm writes the page dcgm-exporter would for the NVIDIA devices of the node that has been scraped.
func dcgm(s *server, dialect string) string {
	var page strings.Builder
	host, driver := "Hostname", "DCGM_FI_DRIVER_VERSION"
	if dialect != "4.8" {
		host, driver = "hostname", "DCGM_FI_SYSTEM_DRIVER_VERSION"
	}
	for _, f := range fields {
		for _, device := range s.query(origin, `gpu_info{gpu_vendor="nvidia"}`) {
			uuid := device.Metric.Get("gpu_uuid")
			found := s.query(origin, fmt.Sprintf("%s{gpu_uuid=%q,%s}", f.of, uuid, f.labels))
			if len(found) == 0 {
				continue
			}
			number := found[0].F / f.since
			if dialect == "4.8" {
				if number = found[0].F / f.unit; f.whole {
					number = math.Round(number)
				}
			}
			fmt.Fprintf(&page, "%s{gpu=%q,UUID=%q,pci_bus_id=%q,device=%q,modelName=%q,%s=%q,%s=%q", f.name(dialect), device.Metric.Get("gpu_index"), uuid,
				"0000"+device.Metric.Get("gpu_pci_address"), "nvidia"+device.Metric.Get("gpu_index"), device.Metric.Get("gpu_model"),
				host, "node-1", driver, device.Metric.Get("gpu_driver_version"))
			owner := s.query(origin, fmt.Sprintf(`gpu_owner_info{gpu_uuid=%q,gpu_partition_uuid=""}`, uuid))[0].Metric
			if pod := owner.Get("k8s_pod_name"); pod != "" {
				fmt.Fprintf(&page, ",namespace=%q,pod=%q,container=%q", owner.Get("k8s_namespace_name"), pod, owner.Get("k8s_container_name"))
			}
			fmt.Fprintf(&page, "} %v\n", number)
		}
	}
	return page.String()
}

// Every rule for another exporter's names answers with data on a simulated node that works, but those
// of engines, of repairs and of XIDs that are not simulated; and none fails.
func TestCompatAnswers(t *testing.T) {
	t.Parallel()
	node := simulate(t, "mixed")
	first := node.busy(`(?m)^inference_prefix_cache_hits_total\{.*\} [1-9]`, `(?m)^gpu_usage_energy_joules_total\{.*gpu_workload_type="kubernetes"`, `(?m)^gpu_row_remap_rows_total`)
	second := node.busy(`(?m)^inference_requests_running\{.*\} [1-9]`)
	for second == first {
		second = node.page()
	}
	s := newServer(t, "../../rules/plain/compat/*.yaml", "../../rules/plain/gpumeter-recording.yaml")
	now := origin
	for i, page := range []string{first, second, second} { // a rule of another group may be one evaluation late
		now = origin.Add(time.Duration(i) * interval)
		s.scrape(now, page, "job", "gpumeter", "instance", "node-1")
		s.evaluate(now)
	}
	absent := regexp.MustCompile(`^(nim|triton|sglang|tgi)_|^DCGM_FI_DEV_RETIRED_|^gpu_row_remap_count|^gpu_xid_error_rate`)
	for _, group := range s.groups {
		if !strings.Contains(group.File(), "compat") { // it is there because some of those read it
			continue
		}
		for _, rule := range group.Rules() {
			selector := rule.Name() + rule.Labels().String()
			if got := s.query(now, selector); (len(got) == 0) != absent.MatchString(rule.Name()) {
				t.Errorf("%s: %s has %d series", group.Name(), selector, len(got))
			}
		}
	}
}
