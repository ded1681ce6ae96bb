package attribution

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// node is a machine with one device, whose counts a test moves.
type node struct {
	*testing.T
	a      *Attributor
	now    time.Time
	claims []Claim
	read   telemetry.Device
	busy   float64
	joules float64
	last   *snapshot.Snapshot
}

func newNode(t *testing.T, cfg Config) *node {
	n := &node{T: t, now: time.Unix(1_800_000_000, 0)}
	cfg.Claims = append(cfg.Claims, func([]DeviceRef) []Claim { return n.claims })
	n.a = New(cfg)
	n.read.Power.Draw.Set(100)
	n.read.Utilization.Utilization.Set(0)
	n.read.Memory.Usage.Set(0)
	n.read.Memory.Limit.Set(80 << 30)
	return n
}

// picture takes one after a time in which the device worked and drew so much.
func (n *node) picture(after time.Duration, busy, joules float64) *snapshot.Snapshot {
	n.now = n.now.Add(after)
	n.busy += busy
	n.joules += joules
	n.read.Utilization.BusyTime.Set(n.busy)
	n.read.Power.Energy.Set(n.joules)
	id := &telemetry.Identity{UUID: "GPU-0", Model: "H100", Vendor: "nvidia"}
	s := &snapshot.Snapshot{Taken: n.now, Devices: []snapshot.Device{{Identity: id, Labels: id.Labels(), Owned: id.Labels(), Read: n.read}}}
	n.a.Stage(s)
	n.last = s
	return s
}

// claim gives a pod the device, or a share of it.
func (n *node) claim(pod string, share float64) {
	n.claims = append(n.claims, Claim{Thing: Thing{Device: "GPU-0"}, Share: share, Workload: Workload{
		Type: telemetry.WorkloadTypeKubernetes, Namespace: "team", Pod: pod, Kind: "Deployment", Name: strings.TrimRight(pod, "-0123456789"),
	}})
}

// of finds a workload's series in the last picture, by parts of its labels; nil when there is none.
func (n *node) of(words ...string) *telemetry.Workload {
	for i := range n.last.Workloads {
		if text := n.last.Workloads[i].Labels.Text(); containsAll(text, words) {
			return &n.last.Workloads[i].Read
		}
	}
	return nil
}

func (n *node) billed(words ...string) *telemetry.Usage {
	for i := range n.last.Usages {
		if text := n.last.Usages[i].Labels.Text(); containsAll(text, words) {
			return &n.last.Usages[i].Read
		}
	}
	return nil
}

func containsAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

func (n *node) want(what string, v metric.Value, number float64) {
	n.Helper()
	if got, ok := v.Get(); !ok || math.Abs(got-number) > 1e-6 {
		n.Errorf("%s: %v (%v), want %v", what, got, v.Why(), number)
	}
}

// A pod's counts are told as 0 for the hold, then in full, and stay after its end.
func TestLifeOfAWorkload(t *testing.T) {
	n := newNode(t, Config{})
	n.picture(0, 0, 0)
	n.claim("web-1", 1)
	n.picture(10*time.Second, 5, 1200) // nobody held the device when the interval began: what it drew at rest is nobody's
	n.want("allocated, in the hold", n.of("web-1").Accounting.AllocatedTime, 0)
	n.picture(10*time.Second, 5, 1000)
	n.want("busy, in the hold", n.of("web-1").Accounting.BusyTime, 0)
	n.picture(10*time.Second, 5, 1000)
	n.picture(10*time.Second, 5, 1000)
	n.want("allocated", n.of("web-1").Accounting.AllocatedTime, 30)
	n.want("busy", n.of("web-1").Accounting.BusyTime, 20)
	n.want("energy", n.of("web-1").Accounting.Energy, 3200)
	n.want("nobody's", n.of(`type="unattributed"`).Accounting.BusyTime, 0)

	n.claims = nil // it ends; what happened until that was found is its own
	n.picture(10*time.Second, 0, 500)
	n.want("allocated, when it has ended", n.of("web-1").Accounting.AllocatedTime, 40)
	if why := n.of("web-1").Holding.MemoryUsage.Why(); why == nil {
		t.Error("one that has ended holds memory")
	}
	n.want("nobody held it", n.of(`type="unallocated"`).Accounting.AllocatedTime, 10)
	for range 62 {
		n.picture(10*time.Second, 0, 500)
	}
	if n.of("web-1") != nil {
		t.Error("its series are still there after ten minutes")
	}
	n.want("its bill", n.billed(`k8s_workload_name="web"`).Accounting.AllocatedTime, 40)
	n.want("its bill", n.billed(`k8s_workload_name="web"`).Accounting.Energy, 3700)
}

// What is learned of a pod within the hold is on its labels, and later it is not: series keep their names.
func TestLabelsFreeze(t *testing.T) {
	n := newNode(t, Config{Hold: 20 * time.Second})
	n.claim("web-1", 1)
	n.claims[0].Kind, n.claims[0].Name = "", ""
	n.picture(0, 0, 0)
	n.claims[0].Kind, n.claims[0].Name = "StatefulSet", "web"
	n.picture(10*time.Second, 1, 1)
	if n.of(`k8s_workload_name="web"`) == nil || len(n.last.Workloads) != 3 {
		t.Errorf("%d series", len(n.last.Workloads))
	}
	n.picture(10*time.Second, 1, 1)
	n.claims[0].Name = "other"
	n.picture(10*time.Second, 1, 1)
	if n.of(`k8s_workload_name="web"`) == nil || n.of(`k8s_workload_name="other"`) != nil {
		t.Error("the labels changed after the hold")
	}
	n.want("allocated", n.of("web-1").Accounting.AllocatedTime, 30)
}

func TestOwnersOfADevice(t *testing.T) {
	n := newNode(t, Config{})
	gauge := func() string { return n.last.Devices[0].Owned.Get("k8s_pod_name") }
	info := func() string {
		for i, name := range []string{"none", "exclusive", "shared"} {
			if v, ok := n.last.Owners[0].Read.Ownership.Info[i].Get(); ok && v == 1 {
				return name + " " + n.last.Owners[0].Labels.Get("k8s_pod_name")
			}
		}
		return "?"
	}
	n.picture(0, 0, 0)
	if gauge() != "" || info() != "none " {
		t.Errorf("nobody: %q, %q", gauge(), info())
	}
	n.claim("a", 1)
	n.picture(time.Second, 0, 0)
	if gauge() != "a" || info() != "exclusive a" {
		t.Errorf("one: %q, %q", gauge(), info())
	}
	n.claim("b", 0.5)
	n.picture(time.Second, 0, 0)
	if gauge() != "" || info() != "shared " {
		t.Errorf("two: %q, %q", gauge(), info())
	}
	if l := n.last.Devices[0].Labels.Get("k8s_pod_name"); l != "" {
		t.Errorf("the labels of counters name %s", l)
	}
	n = newNode(t, Config{Join: true})
	n.claim("a", 1)
	n.picture(0, 0, 0)
	if gauge() != "" || info() != "exclusive a" {
		t.Errorf("to be joined: %q, %q", gauge(), info())
	}
	if d := &n.last.Devices[0]; d.Owned.Get("gpu_model") != "" || d.Owned.Get("gpu_uuid") != "GPU-0" || d.Labels.Get("gpu_model") != "H100" {
		t.Errorf("to be joined: gauges have %s, and all else %s", d.Owned.Text(), d.Labels.Text())
	}
}

// Time nobody saw is nobody's: a machine that slept, a clock that was set back, a device that did not answer.
func TestHoles(t *testing.T) {
	n := newNode(t, Config{Hold: time.Nanosecond})
	n.claim("a", 1)
	n.picture(0, 0, 0)
	n.picture(10*time.Second, 5, 100)
	n.picture(24*time.Hour, 0, 0)
	n.picture(-48*time.Hour, 0, 0)
	n.want("allocated", n.of(`"a"`).Accounting.AllocatedTime, 10)
	n.picture(10*time.Second, -n.busy, -n.joules) // the driver was loaded anew
	n.picture(10*time.Second, 5, 100)
	n.want("busy", n.of(`"a"`).Accounting.BusyTime, 10)
	n.want("energy", n.of(`"a"`).Accounting.Energy, 200)
}

// Errors are booked to who alone held the device when they happened.
func TestSuffering(t *testing.T) {
	n := newNode(t, Config{Hold: time.Nanosecond})
	happen := func(ecc float64) { n.read.ECC.Errors[telemetry.ECCErrorTypeUncorrected].Set(ecc) }
	happen(3) // before anybody looked
	n.claim("a", 1)
	n.picture(0, 0, 0)
	happen(5)
	n.picture(time.Second, 0, 0)
	n.want("its own", n.of(`"a"`).Holding.ECCErrors[telemetry.ECCErrorTypeUncorrected], 2)
	n.claim("b", 1)
	n.picture(time.Second, 0, 0)
	happen(6)
	n.picture(time.Second, 0, 0)
	n.want("shared", n.of(`"a"`).Holding.ECCErrors[telemetry.ECCErrorTypeUncorrected], 2)
	n.want("nobody's", n.of(`"unattributed"`).Holding.ECCErrors[telemetry.ECCErrorTypeUncorrected], 1)
	if why := n.of(`"a"`).Holding.ThrottleTime[0].Why(); why == nil {
		t.Error("what the device does not tell is told of its workload")
	}
}

// The error that ends its workload is that workload's, though nobody holds the device when it is read.
func TestTheErrorThatKills(t *testing.T) {
	n := newNode(t, Config{Hold: time.Nanosecond})
	n.read.XID.Events[telemetry.XIDActionReset].Set(0)
	n.claim("a", 1)
	n.picture(0, 0, 0)
	n.read.XID.Events[telemetry.XIDActionReset].Set(1)
	n.claims = nil
	n.picture(time.Second, 0, 0)
	n.want("its own", n.of(`"a"`).Holding.XIDEvents[telemetry.XIDActionReset], 1)
	n.picture(time.Second, 0, 0)
	n.want("its own, later", n.of(`"a"`).Holding.XIDEvents[telemetry.XIDActionReset], 1)
}

// Beyond the limit the newest workloads are one, and none is lost.
func TestOverflow(t *testing.T) {
	n := newNode(t, Config{Limit: 5, Hold: time.Nanosecond}) // three pods, unattributed and unallocated
	n.picture(0, 0, 0)
	for i := range 10 {
		n.claim(fmt.Sprintf("p-%d", i), 0.1)
	}
	n.picture(10*time.Second, 0, 0)
	n.picture(10*time.Second, 0, 0)
	if len(n.last.Workloads) != 6 {
		t.Errorf("%d workloads", len(n.last.Workloads))
	}
	n.want("together", n.of(`type="overflow"`).Accounting.AllocatedTime, 7)
	total := 0.
	for i := range n.last.Workloads {
		v, _ := n.last.Workloads[i].Read.Accounting.AllocatedTime.Get()
		total += v
	}
	if math.Abs(total-20) > 1e-9 {
		t.Errorf("%v s in all, of 20", total)
	}
}

// Over an hour of pods coming and going at random, what all series together tell is what the device did.
func TestConservation(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 20 {
		n := newNode(t, Config{Hold: 15 * time.Second, Keep: 24 * time.Hour})
		n.picture(0, 0, 0)
		seconds := 0.
		for range 240 {
			if r.IntN(3) == 0 {
				n.claims = nil
				for i := range r.IntN(4) {
					n.claim(fmt.Sprintf("p-%d", r.IntN(20)), []float64{1, 0.5, 0.25}[i%3])
				}
			}
			dt := time.Duration(1+r.IntN(30)) * time.Second
			seconds += dt.Seconds()
			n.picture(dt, r.Float64()*dt.Seconds(), r.Float64()*700*dt.Seconds())
		}
		n.claims = nil
		for range 3 { // until the last hold is over
			seconds += 10
			n.picture(10*time.Second, 0, 0)
		}
		var busy, energy, allocated, billed float64
		for i := range n.last.Workloads {
			x := &n.last.Workloads[i].Read.Accounting
			busy, energy, allocated = busy+number(x.BusyTime), energy+number(x.Energy), allocated+number(x.AllocatedTime)
		}
		for i := range n.last.Usages {
			billed += number(n.last.Usages[i].Read.Accounting.AllocatedTime)
		}
		for what, pair := range map[string][2]float64{
			"busy": {busy, n.busy}, "energy": {energy, n.joules}, "allocated": {allocated, seconds}, "billed": {billed, seconds},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-6*max(1, pair[1]) {
				t.Errorf("round %d: %s: %v in all series, %v of the device", round, what, pair[0], pair[1])
			}
		}
	}
}

func number(v metric.Value) float64 {
	n, _ := v.Get()
	return n
}
