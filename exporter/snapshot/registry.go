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
	mu    sync.Mutex
	known []*known
}

// known is one device, with what is made once of its identity.
type known struct {
	source   string // the first that listed it; its word on the identity counts
	identity *telemetry.Identity
	labels   *metric.Labels
	info     []metric.Keyed
}

// meet returns the known device of that identity, by UUID or else PCI address, and refreshes it.
func (r *registry) meet(source string, id *telemetry.Identity) *known {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.known {
		if k.identity.UUID == id.UUID && id.UUID != "" || k.identity.PCI == id.PCI && id.PCI != "" {
			if k.source == source {
				k.refresh(id)
			}
			return k
		}
	}
	k := &known{source: source, identity: &telemetry.Identity{Index: r.free(id)}}
	k.refresh(id)
	r.known = append(r.known, k)
	return k
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

// refresh takes over an identity but for the index. Pictures already taken keep the old one.
func (k *known) refresh(id *telemetry.Identity) {
	next := *id
	next.Index = k.identity.Index
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
func (r *registry) compose(slots []slot) []Device {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Device, 0, len(r.known))
	for _, k := range r.known {
		d := Device{Identity: k.identity, Labels: k.labels, Owned: k.labels}
		state := telemetry.StateLost
		answered := false
		var parts []part
		for _, s := range slots {
			if s.worker.known != k {
				continue
			}
			if s.reading.device != nil { // one that is lost still has the XIDs that tell why
				parts = append(parts, part{s.worker.source, s.reading.device})
			}
			answered = answered || s.reading.why == nil
			state = worse(state, s.reading.why)
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
