package main

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
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

	pictured []float64 // when pictures were taken

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
	c.pictured = append(c.pictured, at)
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
	return p.lived(at) * p.load * p.weight()
}

// weight is what part of a device a MIG instance is, by which its times are counted.
func (p *tenant) weight() float64 {
	if p.partition != "" {
		return p.share
	}
	return 1
}

// joules are what it used: of a device that is its own what that draws at rest too.
func (p *tenant) joules(at float64) float64 {
	n := loadWatts * p.busy(at)
	if p.share == 1 {
		n += idleWatts * p.lived(at)
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
