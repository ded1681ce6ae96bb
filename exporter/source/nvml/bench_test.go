//go:build cgo

package nvml_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/source/nvml"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// A read of a node through the real loader, all devices at once as the feed reads them. The driver
// takes 1 µs for each call; the budget is 1 ms, and one allocation a call.
func BenchmarkNode(b *testing.B) {
	const gpus = 8
	dir := fakenvml.Build(b)
	config, stats := filepath.Join(dir, "config"), filepath.Join(dir, "stats")
	told := []string{"gpus 8", "delay_ns 1000"}
	fakenvml.Configure(b, config, told...)
	b.Setenv("FAKENVML_CONFIG", config)
	b.Setenv("FAKENVML_STATS", stats)
	library := filepath.Join(dir, fakenvml.Library)
	r, err := nvml.New(nvml.Config{On: byDefault, Library: library}).Open(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			b.Error(err)
		}
	}()
	devices, err := r.Devices(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	read := func() {
		var all sync.WaitGroup
		for _, d := range devices {
			all.Go(func() {
				if why := d.Read(b.Context(), new(telemetry.Device)); why != nil {
					b.Error(why)
				}
			})
		}
		all.Wait()
	}
	for range 3 { // what the devices can not answer is asked once
		for _, d := range devices {
			d.(source.Sampled).Sample(b.Context())
		}
		read()
	}
	before := fakenvml.Stats(b, stats)
	read()
	after := fakenvml.Stats(b, stats)
	calls := 0
	for name, n := range after {
		if strings.HasPrefix(name, "nvmlDevice") && !strings.Contains(name, " ") {
			calls += n - before[name]
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		read()
	}
	b.ReportMetric(float64(calls)/gpus, "calls/device")
}

// byDefault is what is on when nothing is chosen.
func byDefault(d *metric.Desc) bool { return !d.OptIn }
