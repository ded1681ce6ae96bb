package attribution

import (
	"slices"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// account is what one workload has taken of one thing since it was first seen there.
type account struct {
	at       Thing
	workload Workload
	detail   Detail
	method   string
	born     time.Time // first seen
	seen     time.Time // last seen
	turn     uint64    // of the last picture it was in
	frozen   bool      // its labels do not change any more
	live     bool      // its hold is over
	retired  bool      // another of its name and other labels came after it
	tenant   string    // whose share of the limit it takes
	line     *usage    // it is billed to, once its labels are frozen
	model    string    // of the device
	labels   *metric.Labels
	info     telemetry.Part[telemetry.Detail]

	memory metric.Value
	bill
	xids     [len(telemetry.Holding{}.XIDEvents)]count
	ecc      [len(telemetry.Holding{}.ECCErrors)]count
	throttle [len(telemetry.Holding{}.ThrottleTime)]count

	unbilled bill // until the labels are frozen
}

// count is a sum of what was measured; what never was is absent, not 0.
type count struct {
	n     float64
	known bool
}

func (c *count) add(more count) {
	c.n += more.n
	c.known = c.known || more.known
}

// tell writes the count, as 0 while it is not live yet.
func (c count) tell(v *metric.Value, live bool) {
	switch {
	case !c.known:
		v.Fail(metric.Unsupported)
	case !live:
		v.Set(0)
	default:
		v.Set(c.n)
	}
}

// bill is what is paid for.
type bill struct{ busy, energy, allocated count }

func (b *bill) add(more bill) {
	b.busy.add(more.busy)
	b.energy.add(more.energy)
	b.allocated.add(more.allocated)
}

func (b *bill) tell(out *telemetry.Accounting, live bool) {
	b.busy.tell(&out.BusyTime, live)
	b.energy.tell(&out.Energy, live)
	b.allocated.tell(&out.AllocatedTime, live)
}

// identity is a workload without what is learned of it later, such as what made its pod, which of its
// containers it is, or the pod a job runs in.
func identity(w Workload) Workload {
	switch w.Type {
	case telemetry.WorkloadTypeKubernetes:
		w.Container = ""
	case telemetry.WorkloadTypeSlurm:
		w.Namespace, w.Pod, w.Container = "", "", ""
	}
	w.Kind, w.Name, w.User, w.Account, w.Partition = "", "", "", "", ""
	return w
}

// key finds an account.
type key struct {
	Thing
	Workload // its identity
}

// book adds what a workload took.
func (a *account) book(more bill) {
	a.bill.add(more)
	a.unbilled.add(more)
}

// take takes over what another account has counted, of which nothing was told under its own name yet.
func (a *account) take(from *account) {
	a.unbilled.add(from.unbilled)
	a.count(from)
}

// count adds what another account has counted.
func (a *account) count(from *account) {
	a.bill.add(from.bill)
	for i := range a.xids {
		a.xids[i].add(from.xids[i])
	}
	for i := range a.ecc {
		a.ecc[i].add(from.ecc[i])
	}
	for i := range a.throttle {
		a.throttle[i].add(from.throttle[i])
	}
}

// settle takes over what is known of the workload by now, until its labels are frozen: series must
// not change their names. How its use is split may change with every picture.
func (a *account) settle(w Workload, d Detail, method string, now time.Time, hold time.Duration) {
	if method == "" {
		method = a.method
	}
	if a.frozen {
		w, d = a.workload, a.detail
	}
	if a.labels == nil || a.workload != w {
		a.labels = w.labels(a.at)
	}
	if a.info.Labels == nil || a.workload != w || a.detail != d || a.method != method {
		a.workload, a.detail, a.method = w, d, method
		a.info = a.describe()
	}
	a.frozen = a.frozen || !w.waits() || now.Sub(a.born) >= hold
}

// waits reports whether more of the workload becomes known after it is first seen: what made the pod, or the
// job's user.
func (w *Workload) waits() bool {
	return w.Type == telemetry.WorkloadTypeKubernetes || w.Type == telemetry.WorkloadTypeSlurm
}

// describe makes the info series.
func (a *account) describe() telemetry.Part[telemetry.Detail] {
	w := a.workload
	known := telemetry.DescriptionInfoAttributes{
		WorkloadMethod: a.method, K8sWorkloadChain: a.detail.Chain, ContainerImageName: a.detail.Image, SlurmJobName: a.detail.JobName, SlurmQos: a.detail.QOS,
	}.Labels()
	one := metric.Keyed{Labels: metric.NewLabels(slices.Concat(known.Pairs(), a.detail.Shown.Pairs())...)}
	one.Value.Set(1)
	out := telemetry.Part[telemetry.Detail]{Labels: telemetry.DetailAttributes{
		UUID: a.at.Device, PartitionUUID: a.at.Partition, WorkloadType: w.Type,
		K8sNamespaceName: w.Namespace, K8sPodName: w.Pod, K8sContainerName: w.Container, SlurmJobID: w.Job, ProcessUnit: w.Unit,
	}.Labels()}
	out.Read.Description.Info = []metric.Keyed{one}
	return out
}

// tell writes the series. Until the hold is over counts are told as 0, so that increase() sees
// what was used before the first scrape that saw the workload.
func (a *account) tell(turn uint64, now time.Time, hold time.Duration) telemetry.Part[telemetry.Workload] {
	out := telemetry.Part[telemetry.Workload]{Labels: a.labels}
	a.live = a.live || a.frozen && now.Sub(a.born) >= hold // a count that has begun keeps its name
	live := a.live
	a.bill.tell(&out.Read.Accounting, live)
	h := &out.Read.Holding
	if a.turn == turn { // what it holds now; a workload that has ended holds nothing
		h.MemoryUsage = a.memory
	}
	for i := range a.xids {
		a.xids[i].tell(&h.XIDEvents[i], live)
	}
	for i := range a.ecc {
		a.ecc[i].tell(&h.ECCErrors[i], live)
	}
	for i := range a.throttle {
		a.throttle[i].tell(&h.ThrottleTime[i], live)
	}
	return out
}
