package attribution

import (
	"slices"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// ward is what is kept of a device from picture to picture.
type ward struct {
	turn    uint64 // of the last picture it was in
	rest    baseline
	counts  counts  // as it told them
	seconds float64 // since it told its energy
	blind   bool    // since it last answered nobody looked, the clock was set back, or others came to hold it
	stakes  []stake // who holds it since the last picture
	parts   []telemetry.Part[telemetry.Partition]
	worked  map[string]metric.Value        // seconds of each partition, by UUID, as it told them
	uses    []Use                          // of its processes when it last answered
	busy    map[process]float64            // seconds of each process, as it told them
	credit  map[Thing]map[Workload]float64 // seconds of processes beyond what the device has told so far
}

// stake is who holds a thing, and how much of its device that is: 1, or the slices of all for a
// MIG instance, or, for the device of one, what is in no instance.
type stake struct {
	owner  Owner
	weight float64
}

func (a *Attributor) ward(uuid string) *ward {
	w := a.wards[uuid]
	if w == nil {
		w = &ward{credit: map[Thing]map[Workload]float64{}}
		a.wards[uuid] = w
	}
	w.turn = a.turn
	return w
}

// silent says whether a device did not answer this time.
func silent(d *snapshot.Device) bool {
	up, told := d.Read.Presence.Up.Get()
	return told && up == 0
}

// recall gives devices that do not answer the partitions they had: who was given one still has it.
func (a *Attributor) recall(devices []snapshot.Device) []snapshot.Device {
	out := devices
	for i := range devices {
		d := &devices[i]
		w := a.wards[d.Identity.UUID]
		if w == nil || len(w.parts) == 0 || !silent(d) || len(d.Read.Partitions) > 0 {
			continue
		}
		if &out[0] == &devices[0] {
			out = slices.Clone(devices) // a picture is not ours to change
		}
		for _, p := range w.parts {
			known := telemetry.Part[telemetry.Partition]{Labels: p.Labels}
			known.Read.Partitions.Slices = p.Read.Partitions.Slices
			out[i].Read.Partitions = append(out[i].Read.Partitions, known)
		}
	}
	return out
}

// remember keeps the uses of a device that answers; of one that does not, those it had are told,
// without what is measured.
func (w *ward) remember(d *snapshot.Device, uses []Use) []Use {
	if !silent(d) {
		w.parts, w.uses = d.Read.Partitions, uses
		return uses
	}
	uses = slices.Clone(w.uses)
	for i := range uses {
		uses[i].Memory, uses[i].Busy = metric.Value{}, metric.Value{}
	}
	return uses
}

// taken ends the interval before a picture.
func (w *ward) taken(d *snapshot.Device, uses []Use, energy bool) {
	w.read(d)
	if energy {
		w.seconds = 0
	}
	if silent(d) {
		return
	}
	w.blind = false
	w.busy = map[process]float64{}
	for _, u := range uses {
		if n, ok := u.Busy.Get(); ok {
			w.busy[process{u.Thing, u.PID}] = n
		}
	}
}

// measured are the seconds each workload's processes worked since the picture before, which was that
// long ago; nil when the driver measures none.
func (w *ward) measured(at Thing, uses []Use, span float64) map[Workload]float64 {
	var out map[Workload]float64
	for _, u := range uses {
		n, ok := u.Busy.Get()
		if !ok || u.Thing != at || u.How == Proxy {
			continue
		}
		if out == nil {
			out = map[Workload]float64{}
		}
		before, met := w.busy[process{at, u.PID}]
		if !met { // it has begun since, or was not told: it has not worked for longer than that
			before = max(n-span, 0)
		}
		out[u.Workload] += max(n-before, 0)
	}
	return out
}

// mostCredit is how much more than the device a process may have worked by what was told so far,
// seconds: drivers sample processes every few seconds, and devices several times a second.
const mostCredit = 15

// claimCredit adds to what was measured what the processes had left over.
func (w *ward) claimCredit(at Thing, measured map[Workload]float64) {
	if measured == nil {
		return
	}
	for who, seconds := range w.credit[at] {
		if _, works := measured[who]; works {
			measured[who] += seconds
		}
	}
}

// keepCredit keeps what the processes have left over, and says whether it is more than can be.
func (w *ward) keepCredit(at Thing, over map[Workload]float64) (clamped bool) {
	if len(over) == 0 {
		delete(w.credit, at)
		return false
	}
	for who, seconds := range over {
		if seconds > mostCredit {
			over[who], clamped = mostCredit, true
		}
	}
	w.credit[at] = over
	return clamped
}

// nobodys are the same things, held by nobody.
func nobodys(all []stake) []stake {
	var out []stake
	for _, x := range all {
		out = append(out, stake{Owner{Thing: x.owner.Thing}, x.weight})
	}
	return out
}

// sameHolders says whether the same hold the same thing.
func sameHolders(a, b stake) bool {
	return a.owner.Thing == b.owner.Thing && slices.EqualFunc(a.owner.Holders, b.owner.Holders, func(x, y Claim) bool {
		return samePod(&x.Workload, &y.Workload)
	})
}

// join adds to who held things those who hold them since. They have held nothing of the time between
// the pictures, but may have worked in it.
func join(before, now []stake) []stake {
	out := slices.Clone(before)
	for i := range out {
		at := slices.IndexFunc(now, func(x stake) bool { return x.owner.Thing == out[i].owner.Thing })
		if at < 0 || out[i].owner.Sharing == telemetry.SharingExclusive {
			continue // it is one's own as long as is known
		}
		o := &out[i].owner
		o.Holders = slices.Clone(o.Holders)
		for _, c := range now[at].owner.Holders {
			c.Share = 0
			o.hold(&c)
		}
		o.judge()
	}
	return out
}

// stakes says who holds a device, or each of its partitions and, last, what is in none of them.
// Who was given the whole device holds all of its parts.
func (a *Attributor) stakes(d *snapshot.Device, claims map[Thing][]Claim, uses []Use) []stake {
	whole := Thing{Device: d.Identity.UUID}
	if len(d.Read.Partitions) == 0 {
		return []stake{{own(whole, claims[whole], uses), 1}}
	}
	of := slicesOf(d)
	var out []stake
	held := 0.
	for i := range d.Read.Partitions {
		p := &d.Read.Partitions[i]
		at := Thing{whole.Device, p.Labels.Get("gpu_partition_uuid")}
		n, ok := p.Read.Partitions.Slices.Get()
		if at.Partition == "" || !ok { // a GPU instance that is told beside its compute instances
			continue
		}
		all := slices.Clip(claims[at])
		for _, c := range claims[whole] {
			c.Thing = at
			all = append(all, c)
		}
		out = append(out, stake{own(at, all, uses), n / of})
		held += n / of
	}
	if held > 1+1e-9 { // more than there can be
		a.clamps["gpu.workload.allocated.time"]++
		for i := range out {
			out[i].weight /= held
		}
	}
	rest := own(whole, claims[whole], nil)
	rest.employ(uses)
	return append(out, stake{rest, max(1-held, 0)})
}

// together is who holds a device that is used in parts: exclusively who alone holds all of them.
func together(stakes []stake) Owner {
	parts := stakes[:len(stakes)-1]
	o := Owner{Thing: stakes[len(parts)].owner.Thing, Sharing: telemetry.SharingNone}
	all := true
	for i := range parts {
		for _, c := range parts[i].owner.Holders {
			c.Thing, c.Share = o.Thing, c.Share*parts[i].weight
			o.hold(&c)
		}
		all = all && parts[i].owner.Sharing == telemetry.SharingExclusive
	}
	o.judge()
	if o.Sharing == telemetry.SharingExclusive && !all {
		o.Sharing = telemetry.SharingShared // with whoever gets the rest
	}
	return o
}

// named is an owner as the accounts name who holds the thing, which have been met: what is learned after
// the labels of those froze is not told by other series either, so that joins find them.
func (a *Attributor) named(o Owner) Owner {
	own := o.Holders
	for i := range own {
		acc := a.accounts[key{o.Thing, identity(own[i].Workload)}]
		if acc == nil || acc.workload == own[i].Workload {
			continue
		}
		if &o.Holders[0] == &own[0] {
			o.Holders = slices.Clone(own) // the next interval is booked to them as they are
		}
		o.Holders[i].Workload = acc.workload
	}
	return o
}

// meetAll tells who holds the device and its partitions now, and opens their accounts.
func (a *Attributor) meetAll(d *snapshot.Device, w *ward, uses []Use) {
	_, energy := w.counts.energy.Get()
	_, busy := w.counts.busy.Get()
	listed := d.Read.Processes != nil
	if len(w.stakes) == 1 {
		x := &w.stakes[0]
		in := interval{busy: count{known: busy}, energy: count{known: energy}, active: count{known: w.rest.known}}
		a.meet(&x.owner, d, in, 1, w.measured(x.owner.Thing, uses, 0))
		a.result.add(x.owner, a.named(x.owner))
		a.hold(&x.owner, d.Read.Memory.Usage, uses, listed)
		return
	}
	rest := d.Read.Memory.Usage
	told := make([]stake, len(w.stakes))
	for i := range w.stakes[:len(w.stakes)-1] {
		x := &w.stakes[i]
		p := partitionOf(d, x.owner.Partition)
		_, busy := w.worked[x.owner.Partition].Get()
		in := interval{busy: count{known: busy}, energy: count{known: busy && energy && w.rest.known}}
		a.meet(&x.owner, d, in, x.weight, nil)
		told[i] = stake{a.named(x.owner), x.weight}
		a.result.add(x.owner, told[i].owner)
		held := a.hold(&x.owner, p.Partitions.MemoryUsage, uses, listed)
		if n, ok := rest.Get(); ok {
			rest.Set(n - held)
		}
	}
	x := &w.stakes[len(w.stakes)-1]
	told[len(told)-1] = *x
	a.result.add(together(w.stakes), together(told))
	a.meet(&x.owner, d, interval{energy: count{known: energy}}, x.weight, nil)
	if n, ok := rest.Get(); ok {
		if n < 0 {
			a.clamps["gpu.workload.memory.usage"]++
		}
		rest.Set(max(n, 0))
	}
	a.hold(&x.owner, rest, nil, false)
}
