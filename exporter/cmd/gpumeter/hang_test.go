package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/parts"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// busyDevice is a device with one process, and its source.
type busyDevice struct{ id telemetry.Identity }

func (d *busyDevice) Identity() *telemetry.Identity { return &d.id }

func (d *busyDevice) Read(_ context.Context, read *telemetry.Device) *metric.Reason {
	read.Processes = []telemetry.Part[telemetry.Process]{{Labels: telemetry.ProcessAttributes{ProcessPid: 7}.Labels()}}
	return nil
}

func (d *busyDevice) Devices(context.Context) ([]source.Device, error) {
	return []source.Device{d}, nil
}
func (d *busyDevice) Close() error { return nil }

// A process whose files in /proc do not answer delays no scrape beyond the read timeout, no release and not
// the end of the exporter.
func TestNode_HungProcessDelaysNeitherScrapesNorReleaseNorTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		d := &busyDevice{telemetry.Identity{UUID: "GPU-0", Vendor: "nvidia"}}
		a := attribution.New(attribution.Config{Place: func(int64) (attribution.Workload, string, bool) {
			<-hang
			return attribution.Workload{}, "", false
		}})
		n := &node{attributor: a, feed: snapshot.NewFeed(snapshot.Config{
			Sources: []source.Source{{Name: "nvml", Open: func(context.Context) (source.Reader, error) { return d, nil }}},
			Stages:  []snapshot.Stage{{Name: "attribution", Run: a.Stage, Partial: a.Partial}},
		})}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		var all parts.Group
		n.read(ctx, &all)
		go func() { all.Wait(context.Background()); close(ended) }()
		synctest.Wait()
		start := time.Now()
		if s := n.feed.Snapshot(ctx); !s.Partial || s.Devices[0].State() != "ok" || time.Since(start) > 2*time.Second {
			t.Errorf("a scrape took %v; partial %v, device %s", time.Since(start), s.Partial, s.Devices[0].State())
		}
		start = time.Now()
		if err := n.feed.Release(ctx, 0); err != nil || time.Since(start) > 0 {
			t.Errorf("released after %v: %v", time.Since(start), err)
		}
		time.Sleep(time.Minute)
		start = time.Now()
		cancel()
		<-ended
		if time.Since(start) > 0 {
			t.Errorf("the exporter ended after %v", time.Since(start))
		}
		close(hang)
		synctest.Wait()
	})
}
