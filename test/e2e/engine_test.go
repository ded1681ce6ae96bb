package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// podsOf are the pods that the series of a family name.
func podsOf(f *dto.MetricFamily) map[string]bool {
	pods := map[string]bool{}
	for _, m := range f.GetMetric() {
		var namespace, pod string
		for _, l := range m.Label {
			switch l.GetName() {
			case "k8s_namespace_name":
				namespace = l.GetValue()
			case "k8s_pod_name":
				pod = l.GetValue()
			}
		}
		pods[namespace+"/"+pod] = true
	}
	return pods
}

// The engines of a simulated node are in pods that own its devices, and are gone while an outage of
// theirs is asked for; the devices stay.
func TestEngines(t *testing.T) {
	t.Parallel()
	faults := filepath.Join(t.TempDir(), "faults")
	e := serve(t, nil, "--simulate", "h100migx1", "--simulate-faults", faults, "--max-age", "10ms")
	await := func(what string, holds func(map[string]*dto.MetricFamily) bool) {
		t.Helper()
		for range 150 {
			if holds(parse(t, e.get(t, "/metrics", "Accept", "text/plain"))) {
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
		t.Fatalf("not within 30 s: %s", what)
	}
	await("two engines, in pods that hold a part of the device", func(page map[string]*dto.MetricFamily) bool {
		owners := podsOf(page["gpu_owner_info"])
		engines := podsOf(page["inference_requests_running"])
		for pod := range engines {
			if !owners[pod] {
				return false
			}
		}
		return len(engines) == 2
	})
	await("requests that ended, and as many durations of them", func(page map[string]*dto.MetricFamily) bool {
		var ended float64
		var durations uint64
		for _, m := range page["inference_requests_finished_total"].GetMetric() {
			ended += m.GetCounter().GetValue()
		}
		for _, m := range page["inference_request_duration_seconds"].GetMetric() {
			durations += m.GetHistogram().GetSampleCount()
		}
		return ended > 20 && float64(durations) == ended
	})
	if err := os.WriteFile(faults, []byte("engine-outage"), 0o600); err != nil {
		t.Fatal(err)
	}
	await("no engine, and the device", func(page map[string]*dto.MetricFamily) bool {
		return page["inference_requests_running"] == nil && len(page["gpu_up"].GetMetric()) == 1
	})
	if err := os.Remove(faults); err != nil {
		t.Fatal(err)
	}
	await("the engines come back", func(page map[string]*dto.MetricFamily) bool {
		return len(page["inference_requests_running"].GetMetric()) == 2
	})
}
