package snapshot

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// gpu is a device whose Read does what the test says.
type gpu struct {
	id    telemetry.Identity
	reads atomic.Int64
	read  func(ctx context.Context, d *telemetry.Device) *metric.Reason
}

func newGPU(index int) *gpu {
	uuid := "GPU-" + string(rune('a'+index))
	return &gpu{id: telemetry.Identity{UUID: uuid, Index: index, Vendor: "nvidia", Model: "M"}}
}

func (g *gpu) Identity() *telemetry.Identity { return &g.id }

func (g *gpu) Read(ctx context.Context, d *telemetry.Device) *metric.Reason {
	g.reads.Add(1)
	d.Power.Draw.Set(float64(100 + g.id.Index))
	if g.read != nil {
		return g.read(ctx, d)
	}
	return nil
}

// driver is a source over such devices.
type driver struct {
	mu      sync.Mutex
	devices []source.Device
	openErr error
	listErr error
	opened  atomic.Int64
	closed  atomic.Int64
}

func (d *driver) source(name string) source.Source {
	return source.Source{Name: name, Doc: "a fake", Open: func(context.Context) (source.Reader, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.openErr != nil {
			return nil, d.openErr
		}
		d.opened.Add(1)
		return d, nil
	}}
}

func (d *driver) set(f func()) { d.mu.Lock(); defer d.mu.Unlock(); f() }

func (d *driver) Devices(context.Context) ([]source.Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]source.Device(nil), d.devices...), d.listErr
}

func (d *driver) Close() error { d.closed.Add(1); return nil }

// run starts a feed in a bubble of fake time and stops it when the test ends.
func run(t *testing.T, cfg Config) *Feed {
	f := NewFeed(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { f.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
	return f
}

// state names the state of a device.
func state(t *testing.T, d *Device) telemetry.State {
	t.Helper()
	found, n := telemetry.State(-1), 0
	for i, v := range d.Read.Presence.State {
		if x, ok := v.Get(); ok && x == 1 {
			found, n = telemetry.State(i), n+1
		}
	}
	up, _ := d.Read.Presence.Up.Get()
	if n != 1 || (up == 1) != (found == telemetry.StateOK) {
		t.Fatalf("%d states hold, up is %v", n, up)
	}
	return found
}
