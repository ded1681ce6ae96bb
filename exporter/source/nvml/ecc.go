//go:build cgo

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// locations are the driver's names of the memories, in the order of the spec.
var locations = [...]nvml.MemoryLocation{
	telemetry.ECCLocationDram:          nvml.MEMORY_LOCATION_DRAM,
	telemetry.ECCLocationSram:          nvml.MEMORY_LOCATION_SRAM,
	telemetry.ECCLocationL1Cache:       nvml.MEMORY_LOCATION_L1_CACHE,
	telemetry.ECCLocationL2Cache:       nvml.MEMORY_LOCATION_L2_CACHE,
	telemetry.ECCLocationRegisterFile:  nvml.MEMORY_LOCATION_REGISTER_FILE,
	telemetry.ECCLocationTextureMemory: nvml.MEMORY_LOCATION_TEXTURE_MEMORY,
	telemetry.ECCLocationSharedMemory:  nvml.MEMORY_LOCATION_TEXTURE_SHM,
	telemetry.ECCLocationCbu:           nvml.MEMORY_LOCATION_CBU,
}

// errorTypes are the driver's names of the sorts of errors, in the order of the spec.
var errorTypes = [...]nvml.MemoryErrorType{
	telemetry.ECCErrorTypeCorrected:   nvml.MEMORY_ERROR_TYPE_CORRECTED,
	telemetry.ECCErrorTypeUncorrected: nvml.MEMORY_ERROR_TYPE_UNCORRECTED,
}

// errorCounts watch the counts that are asked for by calls: errors by where they were, since the driver
// was loaded and in the life of the board, and those of the memory on the chip.
type errorCounts struct {
	located [2][len(errorTypes)][len(locations)]counter
	sram    [9]counter
}

// ecc reads errors by where they were; their totals are fields. Most boards tell only dram and
// sram, and are asked for no other a second time.
func ecc(p *pass, out *telemetry.ECC) {
	on := p.h.reader.chosen.metrics
	if on["gpu.ecc.location.errors"] {
		located(p, &out.LocationErrors, nvml.VOLATILE_ECC)
	}
	if on["gpu.ecc.location.lifetime.errors"] {
		located(p, &out.LocationLifetimeErrors, nvml.AGGREGATE_ECC)
	}
	if on["gpu.ecc.sram.uncorrected.errors"] || on["gpu.ecc.sram.uncorrected.lifetime.errors"] ||
		on["gpu.ecc.sram.unit.lifetime.errors"] || on["gpu.ecc.sram.threshold.exceeded"] {
		sram(p, out)
	}
}

func located(p *pass, out *[len(errorTypes)][len(locations)]metric.Value, of nvml.EccCounterType) {
	dev := p.dev
	for i, errorType := range errorTypes {
		for j, location := range locations {
			variant := (int(of)*len(errorTypes)+i)*len(locations) + j
			read(p, &out[i][j], askErrors, variant, "{error}", whole, func() (uint64, nvml.Return) {
				return dev.GetMemoryErrorCounter(errorType, of, location)
			})
			p.h.errors.located[of][i][j].check(&out[i][j])
		}
	}
}

func sram(p *pass, out *telemetry.ECC) {
	s, why := call(p, askSRAM, 0, p.dev.GetSramEccErrorStatus)
	for i, x := range [len(p.h.errors.sram)]struct {
		v *metric.Value
		n uint64
	}{
		{&out.SramUncorrectedErrors[telemetry.ECCSramCheckParity], s.VolatileUncParity},
		{&out.SramUncorrectedErrors[telemetry.ECCSramCheckSecded], s.VolatileUncSecDed},
		{&out.SramUncorrectedLifetimeErrors[telemetry.ECCSramCheckParity], s.AggregateUncParity},
		{&out.SramUncorrectedLifetimeErrors[telemetry.ECCSramCheckSecded], s.AggregateUncSecDed},
		{&out.SramUnitLifetimeErrors[telemetry.ECCSramUnitL2], s.AggregateUncBucketL2},
		{&out.SramUnitLifetimeErrors[telemetry.ECCSramUnitSM], s.AggregateUncBucketSm},
		{&out.SramUnitLifetimeErrors[telemetry.ECCSramUnitPCIE], s.AggregateUncBucketPcie},
		{&out.SramUnitLifetimeErrors[telemetry.ECCSramUnitMicrocontroller], s.AggregateUncBucketMcu},
		{&out.SramUnitLifetimeErrors[telemetry.ECCSramUnitOther], s.AggregateUncBucketOther},
	} {
		put(x.v, why, "{error}", whole, x.n)
		p.h.errors.sram[i].check(x.v)
	}
	put(&out.SramThresholdExceeded, why, state, whole, s.BThresholdExceeded)
}
