package prometheus

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
)

// level is how the sick one of a scene does.
type level int

const (
	healthy level = iota
	under         // just not enough for the alert
	sick          // enough for the first scrape of it to lift a rate over the threshold
	above         // just enough for it, once a window is full of it
)

// levels are a number at each level. What has no window is only ever sick, and then just enough.
type levels [4]float64

// scene is what the nodes serve at one scrape after another.
type scene struct {
	tick    int // scrapes since the onset, below 0 before it
	level   level
	ends    bool                         // the pod of the sick one ends at the onset, and none comes
	every   int                          // scrapes after each of which the sick one's pod gives way to a new one; 0: it stays
	blinks  time.Duration                // it is sick for as long and well at the next scrape, again and again; 0: no
	counted map[string]float64           // by series
	page    map[string]sample            // of this scrape, by series
	refs    map[string]storage.SeriesRef // that the database gave
	last    map[string]sample            // the page before
}

type sample struct {
	labels labels.Labels
	value  float64
}

func newScene() *scene {
	return &scene{counted: map[string]float64{}, refs: map[string]storage.SeriesRef{}}
}

// now is which of the sick one's pods is there: its number, from 0.
func (c *scene) now() (int, bool) {
	if c.tick < 0 || c.every == 0 {
		return 0, c.tick < 0 || !c.ends
	}
	return c.tick / c.every, true
}

// between is whether the device's last pod has ended, and the next is still to come.
func (c *scene) between() bool { return c.tick >= 0 && c.every > 0 && c.tick%c.every == c.every-1 }

func (c *scene) put(number float64, name string, pairs ...string) {
	set := labels.FromStrings(append([]string{"__name__", name, "job", "gpumeter"}, pairs...)...)
	c.page[set.String()] = sample{set, number}
}

// add puts a counter that rises.
func (c *scene) add(by float64, name string, pairs ...string) {
	key := name + strings.Join(pairs, "\xff")
	c.counted[key] += by
	c.put(c.counted[key], name, pairs...)
}

// scrape appends the page, and a mark for each series that the page before had and this one has not.
func (c *scene) scrape(s *server, at time.Time, page func(*scene)) {
	s.Helper()
	if last := int(c.blinks / interval); last > 0 && c.tick >= 0 {
		if c.level = sick; c.tick%(last+1) == last {
			c.level = healthy
		}
	}
	c.last, c.page = c.page, map[string]sample{}
	page(c)
	for key, gone := range c.last {
		if _, there := c.page[key]; !there {
			gone.value = math.Float64frombits(value.StaleNaN)
			c.page[key] = gone
			defer delete(c.page, key)
		}
	}
	app := s.db.Appender(s.Context())
	for _, key := range slices.Sorted(maps.Keys(c.page)) {
		ref, err := app.Append(c.refs[key], c.page[key].labels, at.UnixMilli(), c.page[key].value)
		if err != nil {
			s.Fatalf("%s at %s: %v", key, at.Sub(origin), err)
		}
		c.refs[key] = ref
	}
	if err := app.Commit(); err != nil {
		s.Fatal(err)
	}
}

// device is one of the nodes' devices as one scrape finds it.
type device struct {
	*scene
	level    level
	sick     bool // the one the alert is about
	node     string
	uuid     string
	identity []string
	owner    []string // labels; empty where nobody holds it
}

const (
	sickNode = "node-a"
	sickGPU  = "GPU-2"
)

// holder has the labels of a workload's pod.
func holder(workload string, pod int) []string {
	return []string{
		"k8s_container_name", "main", "k8s_namespace_name", "ml", "k8s_pod_name", fmt.Sprintf("%s-%d", workload, pod),
		"k8s_workload_kind", "Job", "k8s_workload_name", workload,
	}
}

// devices serves four on each of two nodes, all of them held, one of them sick.
func devices(serve func(device)) func(*scene) {
	return func(c *scene) {
		for i := range 8 {
			d := device{scene: c, node: []string{sickNode, "node-b"}[i/4], uuid: fmt.Sprint("GPU-", i)}
			d.identity = []string{"instance", d.node, "gpu_uuid", d.uuid, "gpu_index", fmt.Sprint(i % 4), "gpu_vendor", "nvidia", "gpu_model", "H100"}
			if d.sick = d.uuid == sickGPU; d.sick {
				d.level = c.level
				if pod, there := c.now(); there && !c.between() {
					d.owner = holder("train", pod)
				}
			} else {
				d.owner = holder(fmt.Sprint("other", i), 0)
			}
			sharing := "exclusive"
			if d.owner == nil {
				sharing = "none"
			}
			c.put(1, "gpu_owner_info", d.with(d.owner, "gpu_sharing", sharing)...)
			serve(d)
		}
	}
}

func (d device) with(owner []string, pairs ...string) []string {
	return slices.Concat(d.identity, owner, pairs)
}

// gauge bears the owner's labels, as the exporter has them.
func (d device) gauge(name string, at levels, pairs ...string) {
	d.put(at[d.level], name, d.with(d.owner, pairs...)...)
}

// states is one gauge for each state, of which one is 1.
func (d device) states(name, label, now string, all ...string) {
	for _, state := range all {
		is := 0.0
		if state == now {
			is = 1
		}
		d.put(is, name, d.with(d.owner, label, state)...)
	}
}

// count rises by so much a second, and bears no owner's labels, else an event would be lost with its pod.
func (d device) count(name string, perSecond levels, pairs ...string) {
	d.add(perSecond[d.level]*interval.Seconds(), name, d.with(nil, pairs...)...)
}

// once rises by so much at the onset alone.
func (d device) once(name string, by levels, pairs ...string) {
	if d.tick != 0 {
		by = levels{}
	}
	d.add(by[d.level], name, d.with(nil, pairs...)...)
}

// work is a counter of each pod that held the device, which is served for ten minutes after the pod's end.
func (d device) work(name string, by func(pod int, ended bool) float64, pairs ...string) {
	const kept = int(10 * time.Minute / interval)
	if !d.sick {
		d.add(by(0, false), name, d.with(d.owner[2:], append(pairs, "gpu_workload_type", "kubernetes")...)...)
		return
	}
	last, there := d.now()
	for pod := range last + 1 {
		ended := pod < last || !there
		if ended && d.tick >= (pod+1)*d.every+kept {
			continue
		}
		owner := holder("train", pod)[2:] // no container: it may have several
		d.add(by(pod, ended), name, d.with(owner, append(pairs, "gpu_workload_type", "kubernetes")...)...)
	}
}

// suffered is what happened at the onset, booked to the pod that was there then.
func (d device) suffered(name string, by levels, pairs ...string) {
	d.work(name, func(pod int, _ bool) float64 {
		if d.tick == 0 && pod == 0 {
			return by[d.level]
		}
		return 0
	}, pairs...)
}

// engine is one of the inference engines as one scrape finds it.
type engine struct {
	*scene
	level level
	pairs []string
}

const sickModel = "llama"

// engines serves two of the model of which one is sick, and one of another model.
func engines(serve func(engine)) func(*scene) {
	return func(c *scene) {
		for i, model := range []string{sickModel, sickModel, "qwen"} {
			e := engine{scene: c}
			pod, there := 0, true
			if i == 0 {
				e.level = c.level
				pod, there = c.now()
			}
			if !there {
				continue
			}
			e.pairs = []string{
				"instance", []string{sickNode, "node-b", "node-c"}[i], "inference_engine", "vllm", "inference_model", model,
				"k8s_namespace_name", "ml", "k8s_pod_name", fmt.Sprintf("vllm%d-%d", i, pod),
			}
			serve(e)
		}
	}
}

func (e engine) gauge(name string, at levels) { e.put(at[e.level], name, e.pairs...) }

func (e engine) count(name string, perSecond levels, pairs ...string) {
	e.add(perSecond[e.level]*interval.Seconds(), name, append(slices.Clone(e.pairs), pairs...)...)
}

// late serves a histogram of one request a second, of which a share is slower than the limit; none is
// slower than the bound that comes after it.
func (e engine) late(name string, share levels, limit, next string) {
	e.count(name, levels{1 - share[0], 1 - share[1], 1 - share[2], 1 - share[3]}, "le", limit)
	e.count(name, levels{1, 1, 1, 1}, "le", next)
	e.count(name, levels{1, 1, 1, 1}, "le", "+Inf")
}
