//go:build cgo

package nvml

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// node is an opened reader with a clock that stands still but for its test.
type node struct {
	testing.TB
	*reader
	ahead *atomic.Int64 // of the time the test began
}

// started opens a library for a test, and closes it at the end, when nothing of it may be held any more.
func started(t testing.TB, l *fakeLibrary, with ...func(*Config)) *node {
	t.Helper()
	begun, ahead, cfg := time.Now(), new(atomic.Int64), config()
	for _, set := range with {
		set(&cfg)
	}
	cfg.now = func() time.Time { return begun.Add(time.Duration(ahead.Load())) }
	r, err := open(l, cfg, newArchive(), everything())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closed(t, r)
		if n := l.samples.Load(); n != 0 {
			t.Errorf("%d samples of the profiler are still held", n)
		}
	})
	return &node{t, r, ahead}
}

func (n *node) turn(d time.Duration) { n.ahead.Add(int64(d)) }

// list lists the devices.
func (n *node) list() []*handle {
	n.Helper()
	devices, err := n.Devices(n.Context())
	if err != nil {
		n.Fatal(err)
	}
	out := make([]*handle, len(devices))
	for i, d := range devices {
		out[i] = d.(*handle)
	}
	return out
}

// read reads a device that answers.
func (n *node) read(h *handle) *telemetry.Device {
	n.Helper()
	out := new(telemetry.Device)
	if why := h.Read(n.Context(), out); why != nil {
		n.Fatalf("%s: %s", h.identity.UUID, why.Text)
	}
	return out
}

// number is a reading that is there.
func (n *node) number(what string, v metric.Value) float64 {
	n.Helper()
	got, ok := v.Get()
	if !ok {
		n.Fatalf("%s: none: %s", what, v.Why().Text)
	}
	return got
}
