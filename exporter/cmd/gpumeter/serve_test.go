package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// tried are sources that have all been tried after a while.
type tried struct{ at time.Time }

func (s tried) Started() bool { return !time.Now().Before(s.at) }
func (s tried) Sources() []snapshot.SourceHealth {
	if !s.Started() {
		return []snapshot.SourceHealth{{Name: "nvml", State: telemetry.SourceStateFailed}}
	}
	return []snapshot.SourceHealth{{Name: "nvml", State: telemetry.SourceStateServing, Devices: 8}, {Name: "host", State: telemetry.SourceStateAbsent}}
}

// The line has the sources as they are once tried, and comes without them when one hangs.
func TestAnnounce_WaitsForSources(t *testing.T) {
	for name, c := range map[string]struct {
		takes, ends time.Duration
		want        string
		after       time.Duration
	}{
		"tried":   {time.Second, time.Hour, `msg=serving url=http://localhost:9450/ sources="nvml serving (8 devices), host absent"`, time.Second},
		"hanging": {time.Hour, time.Hour, `sources="nvml failed"`, announcePatience},
		"stopped": {time.Hour, time.Second, "", time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(c.ends, cancel)
			var logs bytes.Buffer
			start := time.Now()
			announce(ctx, "http://localhost:9450/", tried{start.Add(c.takes)}, slog.New(slog.NewTextHandler(&logs, nil)))
			if took := time.Since(start); took != c.after || !strings.Contains(logs.String(), c.want) || (c.want == "") != (logs.Len() == 0) {
				t.Errorf("%s: %q after %v, want %q after %v", name, logs.String(), took, c.want, c.after)
			}
			cancel()
		})
	}
}

// SIGHUP is logged each time and changes nothing.
func TestObey_IgnoresSIGHUP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		told, d := listenTo(syscall.SIGHUP, syscall.SIGHUP), &diary{}
		var logs bytes.Buffer
		time.AfterFunc(time.Second, cancel)
		obey(ctx, told, d, slog.New(slog.NewTextHandler(&logs, nil)))
		if n := strings.Count(logs.String(), "SIGHUP ignored"); n != 2 || len(d.lines) > 0 {
			t.Errorf("logged %d times, and did %v", n, d.lines)
		}
	})
}
