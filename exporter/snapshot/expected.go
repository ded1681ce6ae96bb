package snapshot

import (
	"context"
	"slices"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Expected is which devices should be there, whatever the sources list.
type Expected struct {
	Devices []telemetry.Identity // what is known of them; Index -1: it is not
	Count   int                  // at least so many there should be in all
	Vendor  string               // of those that nothing else is known of
}

// expect asks again and again which devices should be there, from when the sources have listed
// theirs or are too slow. It calls asked after the first time.
func (f *Feed) expect(ctx context.Context, tried <-chan struct{}, asked func()) {
	f.wait(ctx, tried)
	for f.cfg.Expected != nil && ctx.Err() == nil {
		var e Expected
		if guard(f.cfg.Logger, "expect devices", func() error { e = f.cfg.Expected(); return nil }) == nil {
			f.devices.expect(e)
		}
		asked()
		sleep(ctx, f.cfg.Relist)
	}
	asked()
}

// expect keeps those devices, besides all that a source has listed.
func (r *registry) expect(e Expected) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count, r.vendor = e.Count, e.Vendor
	still := map[*known]bool{}
	for i := range e.Devices {
		id := &e.Devices[i]
		if !r.chosen(id) {
			continue
		}
		k, replaced := r.same(id)
		if replaced {
			continue
		}
		if k == nil {
			k = &known{uuids: map[string]string{}, expected: true, identity: new(telemetry.Identity)}
			k.refresh(id, r.free(id, (*known).named))
			r.known = append(r.known, k)
		} else if !k.met() {
			k.refresh(id, k.identity.Index)
		}
		still[k] = true
	}
	r.known = slices.DeleteFunc(r.known, func(k *known) bool { return !k.met() && k.named() && !still[k] })
	r.fill()
}

// same finds the device of an expected identity, or says that another board stands in its place.
func (r *registry) same(id *telemetry.Identity) (k *known, replaced bool) {
	for _, k := range r.known {
		if id.UUID == "" {
			break
		}
		if k.identity.UUID == id.UUID {
			return k, false
		}
		for _, uuid := range k.uuids {
			if uuid == id.UUID {
				return k, false
			}
		}
	}
	for _, k := range slices.Backward(r.known) {
		switch {
		case id.PCI == "" || k.identity.PCI != id.PCI:
		case id.UUID == "" || k.identity.UUID == "":
			return k, false
		case k.met():
			return nil, true
		}
	}
	return nil, false
}

// named says whether more is known of a device than that it should be there.
func (k *known) named() bool { return !k.nameless }

// makeWay gives other numbers to devices that no source has listed: one that has been comes first.
func (r *registry) makeWay(met *known) {
	for _, k := range r.known {
		if !k.met() && k.named() && k.identity.Vendor == met.identity.Vendor && k.identity.Index == met.identity.Index {
			k.refresh(k.identity, r.free(k.identity, func(other *known) bool { return other != k && other.named() }))
		}
	}
	r.fill()
}

// fill keeps as many nameless devices as lack to the number there should be.
func (r *registry) fill() {
	before := map[int]*known{}
	r.known = slices.DeleteFunc(r.known, func(k *known) bool {
		if k.nameless {
			before[k.identity.Index] = k
		}
		return k.nameless
	})
	for range r.count - len(r.known) {
		id := telemetry.Identity{Vendor: r.vendor}
		id.Index = r.free(&id, func(*known) bool { return true })
		k := before[id.Index]
		if k == nil || k.identity.Vendor != id.Vendor {
			k = &known{uuids: map[string]string{}, expected: true, nameless: true, identity: new(telemetry.Identity)}
			k.refresh(&id, id.Index)
		}
		r.known = append(r.known, k)
	}
	r.known = slices.DeleteFunc(r.known, func(k *known) bool { return k.nameless && !r.chosen(k.identity) })
}
