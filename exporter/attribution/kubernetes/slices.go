package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// deviceName is how DRA names a device, whole.
type deviceName struct{ driver, pool, device string }

// sliceBook knows what the node's ResourceSlices say of devices. It asks when a device is held of which
// it knows nothing, and now and then for as long as any is held; on a node without DRA it never asks.
type sliceBook struct {
	cluster *cluster
	jitter  time.Duration
	within  time.Duration
	counts  *counts
	health  *health
	learned func() // something is known that was not

	wake chan struct{}

	mu     sync.RWMutex
	known  map[deviceName]Attributes
	wanted map[deviceName]bool // and not known
	held   time.Time           // when a device was last asked for
}

const (
	// slicesEvery is how often slices are read while DRA devices are held, and up to half of it more.
	slicesEvery = 10 * time.Minute
	// slicesApart is the least time between two reads; it doubles while a device stays unknown.
	slicesApart = 30 * time.Second
	// mostDevices is how many are known of one node.
	mostDevices = 16384
)

// told is what is known of a claim's device.
func (b *sliceBook) told(c Claim) (Attributes, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	a, ok := b.known[deviceName{c.Driver, c.Pool, c.Device}]
	return a, ok
}

// want asks for what is not known. It does not wait.
func (b *sliceBook) want(c Claim) {
	name := deviceName{c.Driver, c.Pool, c.Device}
	b.mu.Lock()
	b.held = time.Now()
	_, known := b.known[name]
	if !known && len(b.wanted) < mostDevices {
		b.wanted[name] = true
	}
	b.mu.Unlock()
	if !known {
		nudge(b.wake)
	}
}

// run ends with the context.
func (b *sliceBook) run(ctx context.Context) {
	if !b.needed(ctx, 0) || !sleep(ctx, rand.N(b.jitter+1)) {
		return
	}
	for apart := slicesApart; ; {
		select { // whoever woke us is answered by what follows
		case <-b.wake:
		default:
		}
		all, err := b.read(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			b.health.ill(why(err), err)
		default:
			b.health.well()
			if b.keep(all) {
				b.learned()
			}
		}
		if b.complete() {
			apart = slicesApart
		} else {
			apart = min(2*apart, slicesEvery)
		}
		if !sleep(ctx, max(apart+rand.N(apart/2), retryAfter(err))) || !b.needed(ctx, slicesEvery-apart) {
			return
		}
	}
}

// needed waits for a device that is not known, or for the time to be over while any is held; false: the
// context has ended.
func (b *sliceBook) needed(ctx context.Context, after time.Duration) bool {
	if after <= 0 {
		after = slicesEvery
	}
	again := time.NewTicker(after)
	defer again.Stop()
	for {
		select {
		case <-b.wake:
			return true
		case <-again.C:
			b.mu.RLock()
			held := time.Since(b.held) < fresh && !b.held.IsZero()
			b.mu.RUnlock()
			if held {
				return true
			}
		case <-ctx.Done():
			return false
		}
	}
}

// keep replaces what is known, and says whether that changed anything.
func (b *sliceBook) keep(all map[deviceName]Attributes) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := !maps.Equal(all, b.known)
	b.known = all
	for name := range b.wanted {
		if _, ok := all[name]; ok {
			delete(b.wanted, name)
		}
	}
	return changed
}

// complete says whether all that is wanted is known. What is no longer held is asked for again if it is.
func (b *sliceBook) complete() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	none := len(b.wanted) == 0
	clear(b.wanted)
	return none
}

// read lists the node's slices, in the newest version of their API the server has.
func (b *sliceBook) read(ctx context.Context) (map[deviceName]Attributes, error) {
	if b.cluster.node == "" {
		return nil, errNoNode
	}
	client, host, err := b.cluster.endpoint.httpClient(func() { b.counts.ask(Slices) })
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, b.within)
	defer cancel()
	for _, version := range []string{"v1", "v1beta2", "v1beta1"} {
		body, asked := get(ctx, client, host+"/apis/resource.k8s.io/"+version+"/resourceslices?resourceVersion=0&fieldSelector="+
			url.QueryEscape("spec.nodeName="+b.cluster.node))
		if refused := (*refusal)(nil); errors.As(asked, &refused) && refused.reason() == Unsupported {
			err = asked
			continue
		}
		if asked != nil {
			return nil, asked
		}
		all := map[deviceName]Attributes{}
		err := items(body, func(raw json.RawMessage) { b.slice(raw, all) })
		body.Close() //nolint:errcheck // it was only read
		return all, err
	}
	return nil, err
}

// attribute is one of a device's, as far as it is text.
type attribute struct{ String string }

// slice takes in one; a device of no sense costs itself.
func (b *sliceBook) slice(raw json.RawMessage, into map[deviceName]Attributes) {
	var s struct {
		Spec struct {
			Driver  string
			Pool    struct{ Name string }
			Devices []json.RawMessage
		}
	}
	if json.Unmarshal(raw, &s) != nil || !isPodName(s.Spec.Driver) || !isRaw(s.Spec.Pool.Name) {
		b.counts.rejected.Add(1)
		return
	}
	for _, raw := range s.Spec.Devices {
		var d struct {
			Name       string
			Attributes map[string]attribute
			Basic      struct{ Attributes map[string]attribute } // v1beta1
		}
		if json.Unmarshal(raw, &d) != nil || !isRaw(d.Name) || len(into) >= mostDevices {
			b.counts.rejected.Add(1)
			continue
		}
		if d.Attributes == nil {
			d.Attributes = d.Basic.Attributes
		}
		into[deviceName{s.Spec.Driver, s.Spec.Pool.Name, d.Name}] = attributesOf(s.Spec.Driver, d.Attributes)
	}
}

// attributesOf picks what others know a device by. A name without a domain is the driver's own.
func attributesOf(driver string, all map[string]attribute) Attributes {
	var a Attributes
	for name, value := range all {
		domain, own, qualified := strings.Cut(name, "/")
		if !qualified {
			domain, own = driver, name
		}
		if domain != driver && domain != "resource.kubernetes.io" || !isRaw(value.String) {
			continue
		}
		switch own {
		case "uuid":
			a.UUID = value.String
		case "parentUUID":
			a.Parent = value.String
		case "profile":
			a.Profile = value.String
		case "pciBusID", "pciAddress", "pciAddr":
			if pci := telemetry.NormalizePCI(value.String); address(pci) && (a.PCI == "" || own == "pciBusID") {
				a.PCI = pci
			}
		}
	}
	return a
}
