package snapshot

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// plainDevice is a device that is no pointer, and cannot be compared.
type plainDevice struct{ files []string }

func (plainDevice) Identity() *telemetry.Identity {
	return &telemetry.Identity{UUID: "plain-1", Vendor: "acme"}
}
func (plainDevice) Read(context.Context, *telemetry.Device) *metric.Reason { return nil }

// anonymous is a device that has no identity.
type anonymous struct{ *gpu }

func (*anonymous) Identity() *telemetry.Identity { return nil }

// A device that breaks the rules of source.Reader costs itself only: its neighbour and other sources are
// read, once each, and the log, the source's health and a fault name what is wrong.
func TestFeed_RefusesDevicesThatBreakTheRules(t *testing.T) {
	one, same := newGPU(0), newGPU(0)
	for name, c := range map[string]struct {
		devices []source.Device
		reason  string
		named   string
	}{
		"not a pointer":              {[]source.Device{plainDevice{[]string{"a"}}, one}, "not a pointer", "plain-1"},
		"nil":                        {[]source.Device{nil, one}, "not a pointer", "nil"},
		"no identity":                {[]source.Device{&anonymous{}, one}, "no identity", "anonymous"},
		"listed twice":               {[]source.Device{one, one}, "listed twice", "GPU-a"},
		"two values with one device": {[]source.Device{one, same}, "listed twice", "GPU-a"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one.reads.Store(0)
				same.reads.Store(0)
				well := newGPU(1)
				var logs bytes.Buffer
				f := run(t, Config{
					Sources: []source.Source{(&driver{devices: c.devices}).source("acme"), (&driver{devices: []source.Device{well}}).source("nvml")},
					Logger:  slog.New(slog.NewTextHandler(&logs, nil)),
				})
				f.Snapshot(context.Background())
				if one.reads.Load() != 1 || same.reads.Load() != 0 || well.reads.Load() != 1 {
					t.Errorf("read %d, %d and %d times in one round, want 1, 0 and 1", one.reads.Load(), same.reads.Load(), well.reads.Load())
				}
				time.Sleep(minute)
				s := f.Snapshot(context.Background())
				if got := states(t, s); got != "ok ok" {
					t.Errorf("devices are %s, want ok ok", got)
				}
				if want := (Fault{"acme", "*", c.reason, 3}); len(s.Health.Faults) != 1 || s.Health.Faults[0] != want {
					t.Errorf("faults %+v, want %+v: one for each listing", s.Health.Faults, want)
				}
				h := s.Health.Sources[0]
				if h.State != telemetry.SourceStateServing || h.Devices != 1 || !strings.Contains(h.Err, "acme") || !strings.Contains(h.Err, c.named) || !strings.Contains(h.Err, c.reason) {
					t.Errorf("health of the source %+v, want it to name acme, %s and %q", h, c.named, c.reason)
				}
				if n := strings.Count(logs.String(), "device is not read"); n != 1 {
					t.Errorf("logged %d times in three listings, want once", n)
				}
			})
		})
	}
}
