package attribution

import (
	"github.com/gpumeter/gpumeter/exporter/metric"
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
	parts        map[string]count // seconds in which each partition worked, by UUID
	xids         [len(telemetry.XID{}.Events)]count
	ecc          [len(telemetry.ECC{}.Errors)]count
	throttle     [len(telemetry.Throttle{}.Time)]count
}

// since is the increase from the counts before. A device that did not answer in between is
// accounted when it answers again. What was counted since a reset is told apart: it is not known
// whose it is.
func (c *counts) since(before counts) (out, anew increase) {
	out.busy, anew.busy = rise(&c.busy, before.busy)
	out.energy, anew.energy = rise(&c.energy, before.energy)
	for i := range c.xids {
		out.xids[i], anew.xids[i] = rise(&c.xids[i], before.xids[i])
	}
	for i := range c.ecc {
		out.ecc[i], anew.ecc[i] = rise(&c.ecc[i], before.ecc[i])
	}
	for i := range c.throttle {
		out.throttle[i], anew.throttle[i] = rise(&c.throttle[i], before.throttle[i])
	}
	return out, anew
}

// rise is the difference of two readings, or, of a count that was reset, what it has counted since.
// One that is not told now keeps what it told before.
func rise(now *metric.Value, before metric.Value) (more, anew count) {
	n, ok := now.Get()
	b, had := before.Get()
	switch {
	case !ok:
		*now = before
		return count{}, count{}
	case !had:
		return count{0, true}, count{}
	case n < b:
		return count{0, true}, count{n, true}
	}
	return count{n - b, true}, count{}
}

// suffer books errors and throttling to who alone held the device, else to nobody known.
func (a *Attributor) suffer(o *Owner, in increase) {
	w := unattributed
	if sole := o.Sole(); sole != nil {
		w = sole.Workload
	}
	if acc := a.bookedTo(o.Thing, w); acc != nil {
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
}

// afresh books what a device has counted since a reset to nobody known.
func (a *Attributor) afresh(uuid string, in increase) {
	nobody := Owner{Thing: Thing{Device: uuid}}
	if acc := a.accounts[key{nobody.Thing, unattributed}]; acc != nil {
		acc.book(bill{busy: in.busy, energy: in.energy})
		a.charge(acc)
		a.suffer(&nobody, in)
	}
}
