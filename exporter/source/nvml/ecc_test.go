//go:build cgo

package nvml

import (
	"fmt"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Each memory is asked by the driver's own name, and one that has no count does not hide the others.
func TestErrorLocations(t *testing.T) {
	places := map[nvml.MemoryLocation]telemetry.ECCLocation{
		nvml.MEMORY_LOCATION_L1_CACHE: telemetry.ECCLocationL1Cache, nvml.MEMORY_LOCATION_L2_CACHE: telemetry.ECCLocationL2Cache,
		nvml.MEMORY_LOCATION_DRAM: telemetry.ECCLocationDram, nvml.MEMORY_LOCATION_REGISTER_FILE: telemetry.ECCLocationRegisterFile,
		nvml.MEMORY_LOCATION_TEXTURE_MEMORY: telemetry.ECCLocationTextureMemory, nvml.MEMORY_LOCATION_TEXTURE_SHM: telemetry.ECCLocationSharedMemory,
		nvml.MEMORY_LOCATION_CBU: telemetry.ECCLocationCbu, nvml.MEMORY_LOCATION_SRAM: telemetry.ECCLocationSram,
	}
	number := func(sort nvml.MemoryErrorType, of nvml.EccCounterType, where nvml.MemoryLocation) uint64 {
		return 1000*uint64(of+1) + 100*uint64(sort+1) + uint64(where)
	}
	for _, few := range []bool{false, true} {
		d := answering("GPU-0")
		asked := map[string]int{}
		d.GetMemoryErrorCounterFunc = func(sort nvml.MemoryErrorType, of nvml.EccCounterType, where nvml.MemoryLocation) (uint64, nvml.Return) {
			asked[fmt.Sprint(sort, of, where)]++
			if few && where != nvml.MEMORY_LOCATION_DRAM && where != nvml.MEMORY_LOCATION_SRAM {
				return 0, nvml.ERROR_NOT_SUPPORTED
			}
			return number(sort, of, where), nvml.SUCCESS
		}
		n := started(t, newFakeLibrary(d))
		h := n.list()[0]
		n.read(h)
		out := n.read(h).ECC
		for where, place := range places {
			for sort, kind := range map[nvml.MemoryErrorType]telemetry.ECCErrorType{
				nvml.MEMORY_ERROR_TYPE_CORRECTED: telemetry.ECCErrorTypeCorrected, nvml.MEMORY_ERROR_TYPE_UNCORRECTED: telemetry.ECCErrorTypeUncorrected,
			} {
				for of, v := range map[nvml.EccCounterType]metric.Value{
					nvml.VOLATILE_ECC: out.LocationErrors[kind][place], nvml.AGGREGATE_ECC: out.LocationLifetimeErrors[kind][place],
				} {
					what := fmt.Sprintf("%s in %s, counter %d", kind, place, of)
					times := 2
					if few && where != nvml.MEMORY_LOCATION_DRAM && where != nvml.MEMORY_LOCATION_SRAM {
						want(t, what, v, metric.Unsupported)
						times = 1
					} else {
						want(t, what, v, float64(number(sort, of, where)))
					}
					if n := asked[fmt.Sprint(sort, of, where)]; n != times {
						t.Errorf("%s: asked %d times in two reads, want %d", what, n, times)
					}
				}
			}
		}
	}
}

func TestSRAMErrors(t *testing.T) {
	d := answering("GPU-0")
	d.GetSramEccErrorStatusFunc = func() (nvml.EccSramErrorStatus, nvml.Return) {
		return nvml.EccSramErrorStatus{
			VolatileUncParity: 1, VolatileUncSecDed: 2, AggregateUncParity: 3, AggregateUncSecDed: 4, AggregateUncBucketL2: 5,
			AggregateUncBucketSm: 6, AggregateUncBucketPcie: 7, AggregateUncBucketMcu: 8, AggregateUncBucketOther: 9, BThresholdExceeded: 1,
		}, nvml.SUCCESS
	}
	out, _ := readOnce(t, newFakeLibrary(d))
	x := out.ECC
	want(t, "parity", x.SramUncorrectedErrors[telemetry.ECCSramCheckParity], 1.)
	want(t, "SEC-DED", x.SramUncorrectedErrors[telemetry.ECCSramCheckSecded], 2.)
	want(t, "parity, lifetime", x.SramUncorrectedLifetimeErrors[telemetry.ECCSramCheckParity], 3.)
	want(t, "SEC-DED, lifetime", x.SramUncorrectedLifetimeErrors[telemetry.ECCSramCheckSecded], 4.)
	for unit, n := range map[telemetry.ECCSramUnit]float64{
		telemetry.ECCSramUnitL2: 5, telemetry.ECCSramUnitSM: 6, telemetry.ECCSramUnitPCIE: 7, telemetry.ECCSramUnitMicrocontroller: 8, telemetry.ECCSramUnitOther: 9,
	} {
		want(t, unit.String(), x.SramUnitLifetimeErrors[unit], n)
	}
	want(t, "threshold", x.SramThresholdExceeded, 1.)
}

// A metric that is off costs no call, where others of its group do.
func TestErrorsThatAreOff(t *testing.T) {
	for off, call := range map[string]string{
		"gpu.ecc.location.errors": "GetMemoryErrorCounterFunc0 0", "gpu.ecc.location.lifetime.errors": "GetMemoryErrorCounterFunc0 1",
		"gpu.busy.time": "GetSamplesFunc",
	} {
		d := answering("GPU-0")
		r, err := open(newFakeLibrary(d), config(), newArchive(), choose(func(d *metric.Desc) bool { return d.Name != off }))
		if err != nil {
			t.Fatal(err)
		}
		devices, err := r.Devices(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if why := devices[0].Read(t.Context(), new(telemetry.Device)); why != nil {
			t.Fatal(why.Text)
		}
		closed(t, r)
		asked := 0
		for question := range d.asked {
			if len(question) > len(call) && question[:len(call)] == call {
				asked++
			}
		}
		if asked != 0 {
			t.Errorf("%s is off, and %s was asked in %d ways", off, call, asked)
		}
	}
}
