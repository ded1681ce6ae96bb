package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// What a month of GPUs is billed to each namespace is one expression. It is what the namespaces held,
// but for the time between the last picture of a run and the first of the next.
func TestAMonthIsBilled(t *testing.T) {
	const (
		month  = 30 * 24 * time.Hour
		scrape = 10 * time.Minute
		stop   = 12*24*time.Hour + 7*time.Minute
		down   = 25 * time.Minute
	)
	type job struct {
		gpu       int
		namespace string
		pod       string
		from, to  time.Duration
	}
	start := time.Unix(1_800_000_000, 0)
	r := rand.New(rand.NewPCG(4, 2))
	var jobs []job
	for gpu := range 4 {
		for at := time.Hour; at < month; at += time.Duration(r.IntN(600)) * time.Minute {
			life := time.Duration(10+r.IntN(3000)) * time.Minute
			jobs = append(jobs, job{gpu, fmt.Sprintf("team-%d", r.IntN(3)), fmt.Sprintf("job-%d", len(jobs)), at, min(at+life, month)})
			at += life
		}
	}
	var devices [4]*telemetry.Identity
	for i := range devices {
		devices[i] = &telemetry.Identity{UUID: gpuUUID(i), Index: i, Vendor: "nvidia", Model: "H100"}
	}
	var now time.Duration
	claims := func([]attribution.DeviceRef) (out []attribution.Claim) {
		for _, j := range jobs {
			if j.from <= now && now < j.to {
				out = append(out, attribution.Claim{Thing: attribution.Thing{Device: gpuUUID(j.gpu)}, Share: 1, Workload: attribution.Workload{
					Type: telemetry.WorkloadTypeKubernetes, Namespace: j.namespace, Pod: j.pod, Kind: "CronJob", Name: j.namespace,
				}})
			}
		}
		return out
	}
	begin := func() *attribution.Attributor {
		return attribution.New(attribution.Config{Claims: []func([]attribution.DeviceRef) []attribution.Claim{claims}})
	}
	a := begin()
	var taken, from, to time.Duration // of the last picture, and from when to when none was
	p := newPrometheus(t, "accounting")
	picture := func() *snapshot.Snapshot {
		s := &snapshot.Snapshot{Taken: start.Add(now)}
		for _, id := range devices {
			s.Devices = append(s.Devices, snapshot.Device{Identity: id, Labels: id.Labels(), Owned: id.Labels()})
		}
		a.Stage(s)
		if taken <= stop && now > stop {
			from, to = taken, now
		}
		taken = now
		return s
	}
	running := true
	for now = 0; now <= month; now += time.Minute {
		switch {
		case now > stop && now < stop+down:
			if running {
				a, running = begin(), false
			}
			continue
		case now%scrape == 0:
			p.scrape("node", start.Add(now), picture())
		case a.Changed():
			picture()
		default:
			continue
		}
	}
	if missed := to - from; missed < down || missed > down+2*scrape {
		t.Errorf("%v were missed, want those that it was down, and those since the last scrape before and until the first after", missed)
	}
	got := map[string]float64{}
	for _, x := range p.query(start.Add(month), `sum by (k8s_namespace_name) (increase(gpu_usage_allocated_time_seconds_total[30d])) / 3600`) {
		got[x.Metric.Get("k8s_namespace_name")] = x.F
	}
	truth, lost := map[string]float64{}, map[string]float64{}
	for _, j := range jobs {
		truth[j.namespace] += (j.to - j.from).Hours()
		lost[j.namespace] += max(min(j.to, to)-max(j.from, from), 0).Hours()
	}
	for namespace, hours := range truth {
		t.Logf("%s: %.2f of %.2f hours; %.2f were missed", namespace, got[namespace], hours, lost[namespace])
		if math.Abs(got[namespace]-(hours-lost[namespace])) > 0.001*hours {
			t.Errorf("%s: %v GPU-hours are billed, want %v without the %v that it missed", namespace, got[namespace], hours, lost[namespace])
		}
	}
	if all := got[""]; all == 0 {
		t.Error("nothing is told of the hours that nobody held")
	}
}
