package attribution

import (
	"strconv"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// inParts books an interval of a device that was used in parts. What it drew above rest is divided by
// how long each part worked, times its slices of the device; the rest is of who holds the device
// whole, or nobody's.
func (a *Attributor) inParts(d *snapshot.Device, w *ward, stakes []stake, since increase, active count, seconds float64) {
	parts, rest := stakes[:len(stakes)-1], &stakes[len(stakes)-1]
	worked, by := make([]count, len(parts)), make([]float64, len(parts))
	sum := 0.
	for i := range parts {
		worked[i] = since.parts[parts[i].owner.Partition]
		by[i] = worked[i].n * parts[i].weight
		sum += by[i]
	}
	if sum == 0 { // partitions are sampled every few seconds: between two looks the last one holds
		for i := range parts {
			load, _ := partitionOf(d, parts[i].owner.Partition).Profiling.GrEngineActive.Get()
			by[i] = load * parts[i].weight
			sum += by[i]
		}
	}
	left := since.energy
	for i := range parts {
		x := &parts[i]
		in := interval{seconds: seconds, busy: count{worked[i].n * x.weight, worked[i].known}} // as its allocated time is counted
		if in.busy.known && since.energy.known && active.known {
			in.energy.known = true
			if sum > 0 {
				in.energy.n = active.n * by[i] / sum
			}
			in.active = in.energy
			left.n -= in.energy.n
		}
		a.account(w, &x.owner, in, x.weight, nil)
	}
	left.n = max(left.n, 0)
	a.account(w, &rest.owner, interval{seconds: seconds, busy: since.busy, energy: left}, rest.weight, nil)
	a.suffer(&rest.owner, since)
}

// risen is for how long each partition worked since it last told.
func (w *ward) risen(d *snapshot.Device) map[string]count {
	out := map[string]count{}
	for i := range d.Read.Partitions {
		p := &d.Read.Partitions[i]
		uuid := p.Labels.Get("gpu_partition_uuid")
		now := p.Read.Profiling.GrEngineActiveTime
		out[uuid], _ = rise(&now, w.worked[uuid])
	}
	return out
}

// partitionOf is what was read of a partition; nothing when it is not there.
func partitionOf(d *snapshot.Device, uuid string) *telemetry.Partition {
	for i := range d.Read.Partitions {
		if d.Read.Partitions[i].Labels.Get("gpu_partition_uuid") == uuid {
			return &d.Read.Partitions[i].Read
		}
	}
	return new(telemetry.Partition)
}

// read keeps what the partitions that are there have told.
func (w *ward) read(d *snapshot.Device) {
	next := map[string]metric.Value{}
	for i := range d.Read.Partitions {
		p := &d.Read.Partitions[i]
		uuid := p.Labels.Get("gpu_partition_uuid")
		if uuid == "" {
			continue
		}
		now := p.Read.Profiling.GrEngineActiveTime
		rise(&now, w.worked[uuid]) // keeps what it told before
		next[uuid] = now
	}
	w.worked = next
}

// slicesOf is how many compute slices the device has in all: seven, or as many as its parts have
// together; four on the boards that can be cut into four.
func slicesOf(d *snapshot.Device) float64 {
	if n, err := strconv.ParseFloat(d.Identity.Slices, 64); err == nil && n > 0 {
		return n
	}
	return 7
}
