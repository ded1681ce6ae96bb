package main

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// How the churn goes, in seconds of the simulated clock.
const (
	churnLasts  = 1800. // in which pods are started
	churnPoll   = 5.    // between two questions to the kubelet
	churnScrape = 15.   // of each Prometheus
	churnAfter  = 90.   // until the last hold is over
	idleWatts   = 80.
	loadWatts   = 500.
)

// seat is what a pod can be given: a GPU, one of the replicas of one, or a part of one.
type seat struct {
	gpu          int
	resource, id string
	partition    string
	share        float64
}

// tenant is a pod of the schedule: what it is given, when, and how much it works.
type tenant struct {
	seat
	namespace, pod string
	pid            int64
	from, to       float64
	load           float64 // of the seat's device or part, while it lives
	first, last    float64 // polls that saw it; first is negative when none did
}

// lived is for how long it has lived at a time.
func (p *tenant) lived(at float64) float64 { return max(min(at, p.to)-p.from, 0) }

// churn is a node with eight GPUs: three whole, three with sixteen replicas each, two cut into seven.
type churn struct {
	seats   []seat
	pods    []*tenant
	start   time.Time
	devices [8]*telemetry.Identity
	parts   map[int][]*metric.Labels
	pids    map[int64]*tenant
	labels  map[int64]*metric.Labels

	ended        int // of pods, which are in the order of their ends; what they did is added up
	busy, joules [8]float64
	worked       map[string]float64
}

func gpuUUID(i int) string { return fmt.Sprintf("GPU-6b1f3c1e-94f5-4a5f-9c4b-%012d", i) }
func migUUID(i, part int) string {
	return fmt.Sprintf("MIG-6b1f3c1e-94f5-4a5f-9c4b-%06d%06d", i, part)
}

func newChurn(seed uint64) *churn {
	c := &churn{start: time.Unix(1_800_000_000, 0), parts: map[int][]*metric.Labels{}, pids: map[int64]*tenant{}, labels: map[int64]*metric.Labels{}, worked: map[string]float64{}}
	for i := range c.devices {
		c.devices[i] = &telemetry.Identity{UUID: gpuUUID(i), Index: i, Vendor: "nvidia", Model: "H100"}
		switch {
		case i < 3:
			c.seats = append(c.seats, seat{gpu: i, resource: "nvidia.com/gpu", id: gpuUUID(i), share: 1})
		case i < 6:
			for n := range 16 {
				c.seats = append(c.seats, seat{gpu: i, resource: "nvidia.com/gpu.shared", id: fmt.Sprintf("%s::%d", gpuUUID(i), n), share: 1. / 16})
			}
		default:
			for n := range 7 {
				uuid := migUUID(i, n)
				c.seats = append(c.seats, seat{gpu: i, resource: "nvidia.com/mig-1g.10gb", id: uuid, partition: uuid, share: 1. / 7})
				c.parts[i] = append(c.parts[i], telemetry.PartitionAttributes{PartitionUUID: uuid, PartitionID: fmt.Sprintf("%d/0", 7+n)}.Labels())
			}
		}
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for _, s := range c.seats {
		for at := 10 + 50*r.Float64(); at < churnLasts; {
			life := 3 + r.ExpFloat64()*70
			if r.IntN(30) == 0 {
				life = 5 * math.Pow(1440, r.Float64()) // up to two hours
			}
			n := len(c.pods)
			p := &tenant{
				seat: s, namespace: fmt.Sprintf("team-%d", r.IntN(5)), pod: fmt.Sprintf("pod-%d", n), pid: int64(1000 + n),
				from: at, to: at + life, load: r.Float64(), first: -1,
			}
			if s.share == 1./16 {
				p.load /= 16
			}
			c.pods = append(c.pods, p)
			c.pids[p.pid] = p
			c.labels[p.pid] = telemetry.ProcessAttributes{ProcessPid: p.pid}.Labels()
			at += life + 20*r.Float64()
		}
	}
	slices.SortFunc(c.pods, func(a, b *tenant) int { return int(math.Copysign(1, a.to-b.to)) })
	return c
}

// offers are what the plugin offers.
func (c *churn) offers() []*podresources.ContainerDevices {
	var out []*podresources.ContainerDevices
	for _, s := range c.seats {
		out = append(out, &podresources.ContainerDevices{ResourceName: s.resource, DeviceIds: []string{s.id}})
	}
	return out
}

// list is what the kubelet tells.
func (c *churn) list(at float64) []*podresources.PodResources {
	var out []*podresources.PodResources
	for _, p := range c.pods {
		if p.from <= at && at < p.to {
			out = append(out, givenTo(p.namespace, p.pod, p.resource, p.id))
			if p.first < 0 {
				p.first = at
			}
			p.last = at
		}
	}
	return out
}

// place says whose process it is; nobody knows before the kubelet has told of the pod.
func (c *churn) place(pid int64) (attribution.Workload, string, bool) {
	p := c.pids[pid]
	return attribution.Workload{Type: telemetry.WorkloadTypeKubernetes, Namespace: p.namespace, Pod: p.pod, Container: "main"}, "test", p.first >= 0
}

// picture is what the devices tell at a time: counts of what the pods did until then. Processes and
// partitions are sampled every five seconds, as the exporter does.
func (c *churn) picture(at float64) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Taken: c.start.Add(time.Duration(at * float64(time.Second)))}
	sampled := math.Floor(at/5) * 5
	for c.ended < len(c.pods) && c.pods[c.ended].to < sampled-5 {
		p := c.pods[c.ended]
		c.joules[p.gpu] += p.drawn(at)
		if p.partition != "" {
			c.worked[p.partition] += p.lived(at) * p.load
		} else {
			c.busy[p.gpu] += p.lived(at) * p.load
		}
		c.ended++
	}
	busy, joules, load := c.busy, c.joules, [8]float64{}
	worked, working := maps.Clone(c.worked), map[string]float64{}
	processes := [8][]telemetry.Part[telemetry.Process]{}
	for _, p := range c.pods[c.ended:] {
		if p.from > at {
			continue
		}
		joules[p.gpu] += p.drawn(at)
		if p.partition != "" {
			worked[p.partition] += p.lived(sampled) * p.load
			working[p.partition] += (p.lived(sampled) - p.lived(sampled-5)) / 5 * p.load
			continue
		}
		busy[p.gpu] += p.lived(at) * p.load
		if at < p.to {
			load[p.gpu] += p.load
		}
		if at < p.to && p.share == 1./16 {
			one := telemetry.Part[telemetry.Process]{Labels: c.labels[p.pid]}
			one.Read.Processes.BusyTime.Set(p.lived(sampled) * p.load)
			processes[p.gpu] = append(processes[p.gpu], one)
		}
	}
	for i, id := range c.devices {
		d := snapshot.Device{Identity: id, Labels: id.Labels(), Owned: id.Labels()}
		d.Read.Presence.Up.Set(1)
		d.Read.Power.Energy.Set(idleWatts*at + joules[i])
		d.Read.Power.Draw.Set(idleWatts + loadWatts*load[i])
		if parts := c.parts[i]; parts != nil {
			for _, l := range parts {
				p := telemetry.Part[telemetry.Partition]{Labels: l}
				uuid := l.Get("gpu_partition_uuid")
				p.Read.Partitions.Slices.Set(1)
				p.Read.Profiling.GrEngineActiveTime.Set(worked[uuid])
				p.Read.Profiling.GrEngineActive.Set(working[uuid])
				d.Read.Partitions = append(d.Read.Partitions, p)
			}
		} else {
			d.Read.Utilization.BusyTime.Set(busy[i])
			d.Read.Utilization.Utilization.Set(load[i])
			d.Read.Processes = append([]telemetry.Part[telemetry.Process]{}, processes[i]...)
		}
		s.Devices = append(s.Devices, d)
	}
	return s
}

// drawn is what its work drew by then, J, above what the device draws at rest.
func (p *tenant) drawn(at float64) float64 {
	n := loadWatts * p.lived(at) * p.load
	if p.partition != "" {
		n *= p.share
	}
	return n
}

// busy is for how long it worked, as far as it can be known: what a process did after its last sample
// the driver tells nobody.
func (p *tenant) busy(at float64) float64 {
	if p.share == 1./16 && p.to < at {
		at = math.Floor(p.to/5) * 5
	}
	return p.lived(at) * p.load
}

// joules are what it used: of a device that is its own what that draws at rest too.
func (p *tenant) joules(at float64) float64 {
	n := loadWatts * p.busy(at)
	switch {
	case p.share == 1:
		n += idleWatts * p.lived(at)
	case p.partition != "":
		n *= p.share
	}
	return n
}

// run lets the churn happen: a poll every five seconds, a picture whenever somebody else was given
// something, and two Prometheus of different phase.
func (c *churn) run(a *attribution.Attributor, poll func([]*podresources.PodResources), scrape func(target string, at float64, s *snapshot.Snapshot)) (end map[string]float64) {
	type event struct {
		at   float64
		what string
	}
	var events []event
	const over = churnLasts + churnAfter
	for at := 0.; at <= over; at += churnPoll {
		events = append(events, event{at, "poll"})
	}
	for at := 1.; at <= over; at += churnScrape {
		events = append(events, event{at, "a"}, event{at + 6.3, "b"})
	}
	slices.SortStableFunc(events, func(x, y event) int { return int(math.Copysign(1, x.at-y.at)) })
	picture := func(at float64) *snapshot.Snapshot {
		s := c.picture(at)
		a.Stage(s)
		return s
	}
	end = map[string]float64{}
	for _, e := range events {
		switch e.what {
		case "poll":
			poll(c.list(e.at))
			if a.Changed() {
				picture(e.at)
			}
		default:
			scrape(e.what, e.at, picture(e.at))
			end[e.what] = e.at
		}
	}
	return end
}

func (c *churn) at(seconds float64) time.Time {
	return c.start.Add(time.Duration(seconds * float64(time.Second)))
}

// A thousand pods of five seconds to two hours come and go for half an hour. What two Prometheus
// have of them at the end is what the schedule says, within one poll for each pod, and what the
// ledger has is within one in a hundred.
func TestChurnAgainstTheSchedule(t *testing.T) {
	c := newChurn(7)
	k := startKubelet(t, c.offers())
	a := attribution.New(attribution.Config{Place: c.place, Claims: []func([]snapshot.Device) []attribution.Claim{
		func(d []snapshot.Device) []attribution.Claim { return podClaims(k.client, d) },
	}})
	p := newPrometheus(t, "accounting")
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
			"busy":      {x.busy(end), churnPoll * x.most()},
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

// most is the most that its seat can work, or another on it before it is seen.
func (p *tenant) most() float64 {
	if p.share == 1./16 {
		return p.share
	}
	return 1
}

// power is the part of the device's power that its seat can draw.
func (p *tenant) power() float64 {
	if p.partition != "" {
		return p.share
	}
	return 1
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

// Memory stays as it is however many pods come and go; that of the kubelet's client is tested where it is.
func TestChurnMemory(t *testing.T) {
	c := newChurn(8)
	seats := map[string]seat{}
	for _, s := range c.seats {
		seats[s.id] = s
	}
	var claims []attribution.Claim
	a := attribution.New(attribution.Config{Place: c.place, Claims: []func([]snapshot.Device) []attribution.Claim{
		func([]snapshot.Device) []attribution.Claim { return claims },
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
