package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// A thousand pods of five seconds to two hours come and go for half an hour. What two Prometheus
// have of them at the end is what the schedule says, within one poll for each pod, and what the
// ledger has is within one in a hundred.
func TestChurnAgainstTheSchedule(t *testing.T) {
	c := newChurn(7)
	k := startKubelet(t, c.offers())
	a := attribution.New(attribution.Config{Place: c.place, Claims: []func([]attribution.DeviceRef) []attribution.Claim{
		func(d []attribution.DeviceRef) []attribution.Claim { return podClaims(k.client, d) },
	}})
	p := newPrometheus(t, "accounting", "power", "utilization")
	var lines []int
	end := c.run(a, k.poll, func(target string, at float64, s *snapshot.Snapshot) {
		lines = append(lines, p.scrape(target, c.at(at), s))
	})
	t.Logf("%d pods, %d series, %d scrapes", len(c.pods), len(p.series), len(lines))
	if len(c.pods) < 1000 {
		t.Fatalf("only %d pods", len(c.pods))
	}
	for _, target := range []string{"a", "b"} {
		c.checkPods(t, p, target, end[target])
		c.checkLedger(t, p, target, end[target])
		c.checkSums(t, p, target, end[target])
	}
	third := len(lines) / 3
	if was, is := slices.Max(lines[third:2*third]), slices.Max(lines[2*third:]); float64(is) > 1.25*float64(was) {
		t.Errorf("%d series in the last third, %d in the second", is, was)
	}
}

// checkPods compares the last value of each pod's series with the schedule.
func (c *churn) checkPods(t *testing.T, p *prometheus, target string, end float64) {
	t.Helper()
	last := map[string]map[string]float64{}
	born := map[string]float64{}
	for what, name := range map[string]string{
		"allocated": "gpu_workload_allocated_time_seconds_total", "busy": "gpu_workload_busy_time_seconds_total", "joules": "gpu_workload_energy_joules_total",
	} {
		last[what] = map[string]float64{}
		for _, x := range p.query(c.at(end), fmt.Sprintf(`last_over_time(%s{instance=%q,k8s_pod_name!=""}[1h])`, name, target)) {
			last[what][x.Metric.Get("k8s_pod_name")] += x.F
		}
		for _, x := range p.series {
			if x.labels.Get("instance") == target && x.labels.Get("__name__") == name && x.labels.Get("k8s_pod_name") != "" {
				born[x.labels.Get("k8s_pod_name")] += x.samples[0].n
			}
		}
	}
	here := map[string]bool{}
	for _, x := range p.query(c.at(end), fmt.Sprintf(`gpu_workload_allocated_time_seconds_total{instance=%q}`, target)) {
		here[x.Metric.Get("k8s_pod_name")] = true
	}
	unseen := 0
	for _, x := range c.pods {
		if x.first < 0 {
			unseen++
			if _, told := last["allocated"][x.pod]; told || x.to-x.from > churnPoll {
				t.Errorf("%s: %s lived %v s, no poll saw it, and it is told: %v", target, x.pod, x.to-x.from, told)
			}
			continue
		}
		if born[x.pod] != 0 {
			t.Errorf("%s: %s is born with %v", target, x.pod, born[x.pod])
		}
		for what, truth := range map[string][2]float64{ // and what one poll may be of it
			"allocated": {x.lived(end) * x.share, churnPoll * x.share},
			"busy":      {x.busy(end), churnPoll * x.most() * x.weight()},
			"joules":    {x.joules(end), churnPoll * (loadWatts*x.most() + idleWatts) * x.power()},
		} {
			got, told := last[what][x.pod]
			if slack := truth[1] + 1e-9; !told || math.Abs(got-truth[0]) > slack {
				t.Errorf("%s: %s of %s (%s, %.1f to %.1f s): %v (%v), by the schedule %v, more than %v apart", target, what, x.pod, x.id, x.from, x.to, got, told, truth[0], slack)
			}
		}
		if gone := x.to+churnPoll+600+churnScrape < end; gone && here[x.pod] {
			t.Errorf("%s: series of %s are still there %v s after its end", target, x.pod, end-x.to)
		}
	}
	if unseen == 0 || unseen > 50 {
		t.Errorf("%d pods were not seen by any poll", unseen)
	}
}

// checkLedger compares what each namespace is billed with the schedule.
func (c *churn) checkLedger(t *testing.T, p *prometheus, target string, end float64) {
	t.Helper()
	truth := map[string]map[string]float64{"allocated_time_seconds": {}, "busy_time_seconds": {}, "energy_joules": {}}
	for _, x := range c.pods {
		truth["allocated_time_seconds"][x.namespace] += x.lived(end) * x.share
		truth["busy_time_seconds"][x.namespace] += x.busy(end)
		truth["energy_joules"][x.namespace] += x.joules(end)
	}
	for what, by := range truth {
		query := fmt.Sprintf(`sum by (k8s_namespace_name) (increase(gpu_usage_%s_total{instance=%q,k8s_namespace_name!=""}[%ds]))`, what, target, int(end))
		got := map[string]float64{}
		for _, x := range p.query(c.at(end), query) {
			got[x.Metric.Get("k8s_namespace_name")] = x.F
		}
		for namespace, n := range by {
			if math.Abs(got[namespace]-n) > 0.01*n {
				t.Errorf("%s: %s of %s: %v, by the schedule %v", target, what, namespace, got[namespace], n)
			}
		}
	}
}

// checkSums compares what all series of a device ever told with what the device counted meanwhile:
// none is lost, and none is told twice.
func (c *churn) checkSums(t *testing.T, p *prometheus, target string, end float64) {
	t.Helper()
	last := func(name string) map[string]float64 {
		out := map[string]float64{}
		for _, x := range p.query(c.at(end), fmt.Sprintf(`sum by (gpu_uuid) (last_over_time(%s{instance=%q}[1h]))`, name, target)) {
			out[x.Metric.Get("gpu_uuid")] = x.F
		}
		return out
	}
	began := c.pictured[0]
	allocated, energy, busy := last("gpu_workload_allocated_time_seconds_total"), last("gpu_workload_energy_joules_total"), last("gpu_workload_busy_time_seconds_total")
	device := map[string]map[string]float64{"energy": last("gpu_energy_joules_total"), "busy": last("gpu_busy_time_seconds_total")}
	for i, id := range c.devices {
		pairs := map[string][2]float64{
			"allocated time": {allocated[id.UUID], end - began},
			"energy":         {energy[id.UUID], device["energy"][id.UUID] - idleWatts*began},
		}
		if c.parts[i] == nil {
			pairs["busy time"] = [2]float64{busy[id.UUID], device["busy"][id.UUID]}
		}
		for what, pair := range pairs {
			if math.Abs(pair[0]-pair[1]) > 1e-6*pair[1] || pair[1] == 0 {
				t.Errorf("%s: %s of GPU %d: %v in all series, %v of the device", target, what, i, pair[0], pair[1])
			}
		}
	}
}

// Memory stays as it is however many pods come and go; that of the kubelet's client is tested where it is.
func TestChurnMemory(t *testing.T) {
	c := newChurn(8)
	seats := map[string]seat{}
	for _, s := range c.seats {
		seats[s.id] = s
	}
	var claims []attribution.Claim
	a := attribution.New(attribution.Config{Place: c.place, Claims: []func([]attribution.DeviceRef) []attribution.Claim{
		func([]attribution.DeviceRef) []attribution.Claim { return claims },
	}})
	poll := func(pods []*podresources.PodResources) {
		claims = nil
		for _, p := range pods {
			s := seats[p.GetContainers()[0].GetDevices()[0].GetDeviceIds()[0]]
			claims = append(claims, attribution.Claim{
				Thing: attribution.Thing{Device: gpuUUID(s.gpu), Partition: s.partition}, Share: s.share,
				Workload: attribution.Workload{Type: telemetry.WorkloadTypeKubernetes, Namespace: p.GetNamespace(), Pod: p.GetName(), Container: "main"},
			})
		}
	}
	var first uint64
	c.run(a, poll, func(_ string, at float64, _ *snapshot.Snapshot) {
		if first == 0 && at > churnLasts/3 {
			first = heap()
		}
	})
	if grown := int64(heap()) - int64(first); grown > 1<<20 {
		t.Errorf("%d KiB more in the end than after a third of the time, of %d KiB", grown>>10, first>>10)
	} else {
		t.Logf("%d KiB, %d KiB more than after a third; %d workloads", heap()>>10, grown>>10, a.Counts().Workloads)
	}
	runtime.KeepAlive(a)
}

// heap is what is in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
