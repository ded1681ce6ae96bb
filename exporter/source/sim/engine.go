package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// replica is an engine that answers the requests of a job, on all boards of the job or on a
// partition. It is a function of the time since the driver was loaded alone, but for faults that are
// asked for while it runs.
type replica struct {
	slot   slot // of the first board
	part   int  // which of the board's partitions
	duty   duty // what that has to do; the device has one of its own
	seed   uint64
	idles  bool // the fault that has jobs do nothing hits its boards
	now    func() time.Time
	loaded time.Time // the driver

	seen        time.Duration // the latest time asked for; time never goes back
	cycle, tick int64
	server      *server // nil: nothing answers
	labels      *metric.Labels
}

// newReplicas finds the engines of a node: where jobs answer requests.
func newReplicas(c Config, loaded time.Time, slots []slot, struck []Faults) []*replica {
	var all []*replica
	for i, s := range slots {
		if s.seat > 0 && len(s.board.parts) == 0 { // another board of the job has its engine
			continue
		}
		for part, d := range work(c, s, i) {
			if !d.plan.serving {
				continue
			}
			all = append(all, &replica{
				slot: s, part: part, duty: d, idles: struck[i].has(gpuIdle),
				seed: mix(d.plan.seed, 'r'), now: c.Now, loaded: loaded,
			})
		}
	}
	return all
}

// Engines lists those that answer now.
func (r *reader) Engines(context.Context) []source.Engine {
	if len(r.engines) == 0 {
		return nil
	}
	var up []source.Engine
	since := r.engines[0].now().Sub(r.engines[0].loaded)
	asked := r.wishes.look(int64(since / time.Second))
	for _, e := range r.engines {
		e.moveTo(since, asked)
		if e.server != nil {
			up = append(up, e)
		}
	}
	return up
}

// Labels are the engine's and its pod's.
func (r *replica) Labels() *metric.Labels { return r.labels }

// Read tells what the engine said when it was listed.
func (r *replica) Read(_ context.Context, out *telemetry.Engine) *metric.Reason {
	r.server.tell(&out.Inference)
	return nil
}

// moveTo goes to a time since the driver was loaded. It costs a cycle at most: with each job the
// engine starts anew.
func (r *replica) moveTo(t time.Duration, asked asks) {
	r.seen = max(r.seen, t)
	n := int64(r.seen / time.Second)
	if cycle := n / cycleTicks; cycle != r.cycle {
		r.cycle, r.tick, r.server = cycle, 0, nil
		r.duty.begin()
	}
	for ; r.tick < n%cycleTicks; r.tick++ {
		r.live(asked.at(time.Duration(r.cycle*cycleTicks+r.tick) * time.Second))
	}
}

// live lets a tick pass.
func (r *replica) live(faults Faults) {
	r.duty.enter(r.tick, r.idles && faults.has(gpuIdle))
	j, plan := r.duty.job, r.duty.plan
	if j == nil || r.tick < j.from+j.ramp || faults.has(engineOutage) {
		r.server = nil
		return
	}
	if r.server == nil {
		r.server = newServer(plan.model, r.duty.whole()*plan.mates, mix(r.seed, uint64(r.cycle), uint64(r.tick)), float64(r.tick))
		r.labels = r.name()
	}
	// As much as keeps the boards as busy as they are.
	const most = 0.9
	r.server.pass(r.tick, most*percent*float64(max(1, r.duty.load.busy)), faults.strain())
}

// name says which engine it is, and in which pod.
func (r *replica) name() *metric.Labels {
	pod := r.slot.tenant(r.duty.plan, r.cycle, r.duty.next, r.part)
	address := mix(r.seed, 'a', uint64(r.cycle))
	return telemetry.EngineAttributes{
		InferenceEngine: "vllm", InferenceModel: r.duty.plan.model.name, InferenceEngineIndex: "0",
		InferenceEndpoint: fmt.Sprintf("10.42.%d.%d:8000", address%250, between(scramble(address), 2, 250)),
		K8sNamespaceName:  pod.Namespace, K8sPodName: pod.Pod, K8sContainerName: pod.Container,
		K8sWorkloadKind: pod.Kind, K8sWorkloadName: pod.Name,
	}.Labels()
}
