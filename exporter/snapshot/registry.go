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
	chosen  func(*telemetry.Identity) bool
	mu      sync.Mutex
	known   []*known
	count   int    // so many there should be
	vendor  string // of those that nothing else is known of
}

// known is one device, with what is made once of its identity.
type known struct {
	source   string            // whose word on the identity counts; empty: none has listed it
	uuids    map[string]string // what each source calls it
	found    bool              // it was asked once, or went before it could be
	expected bool              // in pictures before that
	nameless bool              // only its number is expected
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
		k = &known{uuids: map[string]string{}, identity: new(telemetry.Identity)}
		r.known = append(r.known, k)
	}
	k.uuids[source] = cmp.Or(id.UUID, k.uuids[source])
	switch {
	case !k.met():
		index := r.free(id, (*known).met)
		k.source = source
		k.refresh(id, index)
		r.makeWay(k)
	case slices.Index(r.sources, source) <= slices.Index(r.sources, k.source):
		k.source = source
		k.refresh(id, k.identity.Index)
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
		k.found = true
	}
}

// met says whether a source has listed the device.
func (k *known) met() bool { return k.source != "" }

// free is the driver's index, or the next one that none of these devices of the vendor bears.
func (r *registry) free(id *telemetry.Identity, of func(*known) bool) int {
	index := max(id.Index, 0)
	for slices.ContainsFunc(r.known, func(k *known) bool {
		return of(k) && k.labels != nil && k.identity.Vendor == id.Vendor && k.identity.Index == index
	}) {
		index++
	}
	return index
}

// refresh takes over an identity but for the index. Pictures already taken keep the old one. What
// is on every series does not go when a sick driver no longer tells it.
func (k *known) refresh(id *telemetry.Identity, index int) {
	next := *id
	next.Index = index
	next.UUID = cmp.Or(next.UUID, k.identity.UUID)
	next.Vendor = cmp.Or(next.Vendor, k.identity.Vendor)
	next.Model = cmp.Or(next.Model, k.identity.Model)
	next.PCI = cmp.Or(next.PCI, k.identity.PCI)
	if next == *k.identity && k.labels != nil {
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
		let := false
		var parts []part
		for _, s := range slots {
			if s.worker.known != k {
				continue
			}
			k.found = true
			if s.reading.why == metric.Released {
				let = true
				continue
			}
			parts = append(parts, part{s.worker.source, s.reading.device, s.reading.why})
		}
		if !k.found && !k.expected {
			continue
		}
		state := answer(parts)
		if state == telemetry.StateLost {
			state = cmp.Or(then.state(k), now.state(k), k.unasked(let))
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

// answer is the state by what the sources said. One that answered is enough; where none did, late
// outranks failed, which outranks lost.
func answer(parts []part) telemetry.State {
	state := telemetry.StateLost
	for _, p := range parts {
		switch {
		case p.why == nil:
			return telemetry.StateOK
		case p.why == metric.Late:
			state = telemetry.StateLate
		case p.why != metric.Lost && state != telemetry.StateLate:
			state = telemetry.StateFailed
		}
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
		if k.met() && others == 0 {
			out = append(out, cmp.Or(k.identity.UUID, k.identity.PCI))
		}
	}
	return out
}
