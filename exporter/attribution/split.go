package attribution

import (
	"github.com/gpumeter/gpumeter/exporter/snapshot"
)

// methods say how a thing's use was split, as gpu.workload.info tells.
const (
	bySoleOwner  = "sole_owner"     // all of it is the owner's, but for what others were measured to do
	byProcesses  = "process_time"   // energy above rest by the time measured of each process
	byPartitions = "partition_time" // energy above rest by the time measured of each partition
	byNobody     = "unattributed"   // nothing is measured of each
	byAllocation = "allocation"     // only the time held is known
)

// interval is what a thing did between two pictures.
type interval struct {
	seconds      float64 // length
	busy, energy count   // seconds in which it worked, joules
	active       count   // the part of the energy above what it draws at rest, joules
}

// part is what one workload took of an interval.
type part struct {
	workload Workload
	bill
}

// split divides an interval of a thing among its holders and the processes measured on it. The
// parts, with those of type unattributed and unallocated, add up to the interval.
//
// weight is the thing's share of its device: 1, or its slices of all for a MIG instance. over are the
// seconds of processes beyond those of the thing.
func split(o *Owner, in interval, weight float64, measured map[Workload]float64) (parts []part, method string, over map[Workload]float64) {
	given := 0.
	for i := range o.Holders {
		given += o.Holders[i].Share
	}
	each := weight / max(given, 1) // what was given twice is shared
	parts = make([]part, 0, len(o.Holders)+2)
	for i := range o.Holders {
		h := &o.Holders[i]
		parts = append(parts, part{h.Workload, bill{allocated: count{in.seconds * h.Share * each, true}}})
	}
	rest := max(1-given, 0) * weight
	free := part{unallocated, bill{allocated: count{in.seconds * rest, true}}}
	none := part{unattributed, bill{busy: count{0, in.busy.known}, energy: count{0, in.energy.known}}}
	switch {
	case o.Sole() != nil && !in.busy.known && !in.energy.known:
		method = byAllocation
	case o.Sole() != nil:
		method = bySoleOwner
		over = bySole(o.Sole(), &parts[0], &none, in, measured)
	case in.busy.known && measured != nil && len(parts) > 0:
		method = byProcesses
		over = byMeasure(parts, &none, in, measured)
	default:
		method = byNobody
		none.busy, none.energy = in.busy, in.energy
	}
	return append(parts, none, free), method, over
}

// bySole gives the one holder all but what the processes of others were measured to do: those own
// nothing, so it is nobody's. What no process was measured to do is the holder's, since drivers miss
// processes too.
func bySole(sole *Claim, own, none *part, in interval, measured map[Workload]float64) (over map[Workload]float64) {
	others := 0.
	for w, seconds := range measured {
		if !worksFor(&w, &sole.Workload) {
			others += seconds
		}
	}
	active := min(in.active.n, in.energy.n)
	if sole.Share == 0 { // it came since: the device drew at rest for nobody
		none.energy.n = in.energy.n - active
	}
	if others > 0 && in.busy.known {
		var scale float64
		scale, over = scaled(measured, in.busy.n)
		none.busy.n = min(others*scale, in.busy.n)
		if in.busy.n > 0 {
			none.energy.n += active * none.busy.n / in.busy.n
		}
	}
	own.busy = count{in.busy.n - none.busy.n, in.busy.known}
	own.energy = count{max(in.energy.n-none.energy.n, 0), in.energy.known}
	return over
}

// worksFor says whether a process of one workload works for another that holds the thing: it is of the
// same pod or job, or of the pod that the job runs in.
func worksFor(w, holder *Workload) bool {
	return samePod(w, holder) || w.Type != holder.Type && w.Pod != "" && w.Pod == holder.Pod && w.Namespace == holder.Namespace
}

// scaled is by how much processes are to be scaled down that worked more together than the device
// did, and what is then left over of each.
func scaled(measured map[Workload]float64, busy float64) (scale float64, over map[Workload]float64) {
	sum := 0.
	for _, seconds := range measured {
		sum += seconds
	}
	if sum <= busy {
		return 1, nil
	}
	scale, over = busy/sum, map[Workload]float64{}
	for w, seconds := range measured {
		over[w] = seconds * (1 - scale)
	}
	return scale, over
}

// byMeasure divides by what was measured of each process. Processes may have worked more together
// than the device did: they are scaled down to it, and what is left over is returned.
func byMeasure(parts []part, none *part, in interval, measured map[Workload]float64) (over map[Workload]float64) {
	scale, over := scaled(measured, in.busy.n)
	left, leftEnergy := in.busy.n, in.energy.n
	for i := range parts {
		p := &parts[i]
		p.busy.known, p.energy.known = true, in.energy.known && in.active.known
		for w, seconds := range measured {
			if samePod(&w, &p.workload) {
				p.busy.n += seconds * scale
			}
		}
		if in.busy.n > 0 && p.energy.known {
			p.energy.n = in.active.n * p.busy.n / in.busy.n
		}
		left -= p.busy.n
		leftEnergy -= p.energy.n
	}
	none.busy.n, none.energy.n = max(left, 0), max(leftEnergy, 0)
	return over
}

// baseline is the least a device was seen to draw at rest, W.
type baseline struct {
	watts float64
	known bool
}

// see learns from one picture. A device that is used in parts tells the load of each.
func (b *baseline) see(d *snapshot.Device) {
	watts, ok := d.Read.Power.Draw.Get()
	if !ok || !idles(d) {
		return
	}
	if !b.known || watts < b.watts {
		b.watts, b.known = watts, true
	}
}

func idles(d *snapshot.Device) bool {
	if load, told := d.Read.Utilization.Utilization.Get(); told {
		return load == 0
	}
	for i := range d.Read.Partitions {
		p := &d.Read.Partitions[i]
		if load, told := p.Read.Profiling.GrEngineActive.Get(); p.Labels.Get("gpu_partition_uuid") != "" && (!told || load > 0) {
			return false
		}
	}
	return len(d.Read.Partitions) > 0
}

// active is the part of the energy above what the device draws at rest; not known while that is not.
func (b *baseline) active(joules, seconds float64) count {
	if !b.known || joules < 0 {
		return count{}
	}
	return count{max(joules-b.watts*seconds, 0), true}
}
