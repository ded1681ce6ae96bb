package snapshot

import (
	"cmp"
	"slices"
	"sync"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// registry remembers every device seen while the process lives, so that one that is gone stays
// visible and each keeps its index: drivers number again when a device drops.
type registry struct {
	sources []string // as configured; the word of an earlier one on an identity counts
	mu      sync.Mutex
	known   []*known
}

// known is one device, with what is made once of its identity.
type known struct {
	source   string            // whose word on the identity counts
	uuids    map[string]string // what each source calls it
	placed   bool              // in pictures: it was asked once, or went before it could be
	identity *telemetry.Identity
	labels   *metric.Labels
	info     []metric.Keyed
}

// meet returns the known device of that identity and refreshes it.
func (r *registry) meet(source string, id *telemetry.Identity) *known {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.find(source, id)
	if k == nil {
		k = &known{source: source, uuids: map[string]string{}, identity: &telemetry.Identity{Index: r.free(id)}}
		r.known = append(r.known, k)
	}
	k.uuids[source] = cmp.Or(id.UUID, k.uuids[source])
	if slices.Index(r.sources, source) <= slices.Index(r.sources, k.source) {
		k.source = source
		k.refresh(id)
	}
	return k
}

// find goes by UUID, and by PCI address only where no UUID speaks against it: boards are swapped,
// and a bus may be numbered anew.
func (r *registry) find(source string, id *telemetry.Identity) *known {
	for _, k := range r.known {
		if id.UUID != "" && (k.identity.UUID == id.UUID || k.uuids[source] == id.UUID) {
			return k
		}
	}
	for _, k := range slices.Backward(r.known) { // the last board seen there
		if id.PCI != "" && k.identity.PCI == id.PCI && (id.UUID == "" || k.uuids[source] == "") {
			return k
		}
	}
	return nil
}

// leave notes that a source no longer lists a device, which is nil for the host.
func (r *registry) leave(k *known) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k != nil {
		k.placed = true
	}
}

// free is the driver's index, or the next one no other device of the vendor bears.
func (r *registry) free(id *telemetry.Identity) int {
	index := id.Index
	for slices.ContainsFunc(r.known, func(k *known) bool {
		return k.identity.Vendor == id.Vendor && k.identity.Index == index
	}) {
		index++
	}
	return index
}

// refresh takes over an identity but for the index. Pictures already taken keep the old one. What
// is on every series does not go when a sick driver no longer tells it.
func (k *known) refresh(id *telemetry.Identity) {
	next := *id
	next.Index = k.identity.Index
	next.UUID = cmp.Or(next.UUID, k.identity.UUID)
	next.Vendor = cmp.Or(next.Vendor, k.identity.Vendor)
	next.Model = cmp.Or(next.Model, k.identity.Model)
	next.PCI = cmp.Or(next.PCI, k.identity.PCI)
	if next == *k.identity {
		return
	}
	k.identity = &next
	k.labels = next.Labels()
	one := metric.Keyed{Labels: next.Info()}
	one.Value.Set(1)
	k.info = []metric.Keyed{one}
}

// compose joins the readings of a round to the devices they are of, whatever source they are from.
// A device found since the round began is not in it: nobody asked it, so nobody knows how it is.
// Why one was not asked is what held when the round began, or now.
func (r *registry) compose(slots []slot, then, now absence) []Device {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Device, 0, len(r.known))
	for _, k := range r.known {
		d := Device{Identity: k.identity, Labels: k.labels, Owned: k.labels}
		state := then.state(k)
		if state == telemetry.StateLost {
			state = now.state(k)
		}
		answered := false
		var parts []part
		for _, s := range slots {
			if s.worker.known != k {
				continue
			}
			k.placed = true
			if s.reading.why == metric.Released {
				if state == telemetry.StateLost { // taken back at once
					state = telemetry.StateReleased
				}
				continue
			}
			parts = append(parts, part{s.worker.source, s.reading.device, s.reading.why})
			answered = answered || s.reading.why == nil
			state = worse(state, s.reading.why)
		}
		if !k.placed {
			continue
		}
		if answered {
			state = telemetry.StateOK
		}
		merge(&d.Read, parts)
		d.Read.Presence.Info = k.info
		d.Read.Presence.Up.SetBool(state == telemetry.StateOK)
		for i := range d.Read.Presence.State {
			d.Read.Presence.State[i].SetBool(telemetry.State(i) == state)
		}
		out = append(out, d)
	}
	slices.SortStableFunc(out, func(a, b Device) int {
		return cmp.Or(cmp.Compare(a.Identity.Vendor, b.Identity.Vendor), cmp.Compare(a.Identity.Index, b.Identity.Index))
	})
	return out
}

// worse is the state of a device none of whose sources answered: late outranks failed, which outranks lost.
func worse(state telemetry.State, why *metric.Reason) telemetry.State {
	switch {
	case why == metric.Late:
		return telemetry.StateLate
	case why != nil && why != metric.Lost && state != telemetry.StateLate:
		return telemetry.StateFailed
	}
	return state
}

// only names the devices that none but these sources have listed.
func (r *registry) only(sources []string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, k := range r.known {
		others := 0
		for source := range k.uuids {
			if !slices.Contains(sources, source) {
				others++
			}
		}
		if others == 0 {
			out = append(out, cmp.Or(k.identity.UUID, k.identity.PCI))
		}
	}
	return out
}
