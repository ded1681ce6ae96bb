package attribution

import (
	"strconv"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// counts are what a device has counted so far, as one picture tells it.
type counts struct {
	busy, energy metric.Value
	xids         [len(telemetry.XID{}.Events)]metric.Value
	ecc          [len(telemetry.ECC{}.Errors)]metric.Value
	throttle     [len(telemetry.Throttle{}.Time)]metric.Value
}

func countsOf(d *telemetry.Device) counts {
	return counts{d.Utilization.BusyTime, d.Power.Energy, d.XID.Events, d.ECC.Errors, d.Throttle.Time}
}

// increase is what was counted between two pictures.
type increase struct {
	busy, energy count
	xids         [len(telemetry.XID{}.Events)]count
	ecc          [len(telemetry.ECC{}.Errors)]count
	throttle     [len(telemetry.Throttle{}.Time)]count
}

// since is the increase from the counts before. A device that did not answer in between is
// accounted when it answers again.
func (c *counts) since(before counts) (out increase) {
	out.busy = rise(&c.busy, before.busy)
	out.energy = rise(&c.energy, before.energy)
	for i := range c.xids {
		out.xids[i] = rise(&c.xids[i], before.xids[i])
	}
	for i := range c.ecc {
		out.ecc[i] = rise(&c.ecc[i], before.ecc[i])
	}
	for i := range c.throttle {
		out.throttle[i] = rise(&c.throttle[i], before.throttle[i])
	}
	return out
}

// rise is the difference of two readings. A count that was reset says nothing of the time before,
// and one that is not told now keeps what it told before.
func rise(now *metric.Value, before metric.Value) count {
	n, ok := now.Get()
	b, had := before.Get()
	switch {
	case !ok:
		*now = before
		return count{}
	case !had || n < b:
		return count{0, true}
	}
	return count{n - b, true}
}

// suffer books errors and throttling to who alone held the device, else to nobody known.
func (a *Attributor) suffer(o *Owner, in increase) {
	w := unattributed
	if sole := o.Sole(); sole != nil {
		w = sole.Workload
	}
	acc := a.accounts[key{o.Thing, identity(w)}]
	if acc == nil {
		return
	}
	for i := range in.xids {
		acc.xids[i].add(in.xids[i])
	}
	for i := range in.ecc {
		acc.ecc[i].add(in.ecc[i])
	}
	for i := range in.throttle {
		acc.throttle[i].add(in.throttle[i])
	}
}

// partitions accounts for a device that is used in parts. What it draws above rest is divided by
// how long each part worked, times its slices of the device; the rest is nobody's.
func (a *Attributor) partitions(d *snapshot.Device, claims []Claim, uses []Use, since increase, b *baseline, seconds float64) {
	uuid := d.Identity.UUID
	slices := slicesOf(d)
	whole := Owner{Thing: Thing{Device: uuid}}
	active := b.active(since.energy.n, seconds)
	type portion struct {
		owner  Owner
		busy   count
		weight float64
		memory metric.Value
	}
	var all []portion
	worked, held := 0., 0.
	for i := range d.Read.Partitions {
		p := &d.Read.Partitions[i]
		at := Thing{uuid, p.Labels.Get("gpu_partition_uuid")}
		n, ok := p.Read.Partitions.Slices.Get()
		if at.Partition == "" || !ok { // a GPU instance that is told beside its compute instances
			continue
		}
		busy := p.Read.Profiling.GrEngineActiveTime
		x := portion{owner: own(at, claims, uses), weight: n / slices, memory: p.Read.Partitions.MemoryUsage}
		before := a.counts[at]
		x.busy = rise(&busy, before.busy)
		a.counts[at] = counts{busy: busy}
		worked += x.busy.n * x.weight
		held += x.weight
		all = append(all, x)
	}
	spent := 0.
	for i := range all {
		x := &all[i]
		a.result.add(x.owner)
		in := interval{seconds: seconds, busy: x.busy}
		if x.busy.known && since.energy.known {
			in.energy.known = true
			if worked > 0 {
				in.energy.n = active * x.busy.n * x.weight / worked
			}
			in.active = in.energy.n
			spent += in.energy.n
		}
		a.account(&x.owner, d, in, x.weight, nil)
		a.hold(&x.owner, x.memory, uses, d.Read.Processes != nil)
	}
	rest := interval{seconds: seconds, energy: count{max(since.energy.n-spent, 0), since.energy.known}}
	a.account(&whole, d, rest, max(1-held, 0), nil)
	a.suffer(&whole, since)
}

// slicesOf is how many compute slices the device has in all: seven, or as many as its parts have
// together; four on the boards that can be cut into four.
func slicesOf(d *snapshot.Device) float64 {
	if n, err := strconv.ParseFloat(d.Identity.Slices, 64); err == nil && n > 0 {
		return n
	}
	return 7
}
