//go:build cgo

package nvml_test

import (
	"path/filepath"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/source/nvml"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// One read of one device through the real loader; the fake driver's own time is a look at its file a call.
func BenchmarkRead(b *testing.B) {
	dir := fakenvml.Build(b)
	config := filepath.Join(dir, "config")
	fakenvml.Configure(b, config, "gpus 1")
	b.Setenv("FAKENVML_CONFIG", config)
	r, err := nvml.New(nvml.Config{Library: filepath.Join(dir, fakenvml.Library)}).Open(b.Context())
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
	var out telemetry.Device
	b.ReportAllocs()
	for b.Loop() {
		if why := devices[0].Read(b.Context(), &out); why != nil {
			b.Fatal(why)
		}
	}
}
