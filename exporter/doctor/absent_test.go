package doctor

import (
	"maps"
	"slices"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func TestAbsent_NamesMetricsOfTheDeviceAndOfItsParts(t *testing.T) {
	var d telemetry.Device
	d.Power.Draw.Set(1)
	d.Power.Energy.Fail(metric.Unsupported)
	d.ECC.Errors[telemetry.ECCErrorTypeCorrected].Fail(metric.Denied) // the other type has a number
	d.ECC.Errors[telemetry.ECCErrorTypeUncorrected].Set(0)
	xid := metric.Keyed{Labels: telemetry.XIDErrorsAttributes{XID: 79}.Labels()}
	xid.Value.Fail(metric.Failed)
	d.XID.Errors = []metric.Keyed{xid}
	d.Links = make([]telemetry.Part[telemetry.Link], 4)
	for i := range d.Links {
		d.Links[i].Labels = telemetry.LinkAttributes{LinkID: int64(i)}.Labels()
	}
	d.Links[0].Read.Links.Up.Set(1)
	d.Links[1].Read.Links.Up.Fail(metric.Failed)
	d.Links[2].Read.Links.Up.Fail(metric.Failed) // the fourth is a link without it: it was not read
	d.Partitions = []telemetry.Part[telemetry.Partition]{{Labels: telemetry.PartitionAttributes{PartitionUUID: "MIG-1"}.Labels()}}
	d.Partitions[0].Read.Partitions.MemoryUsage.Fail(metric.Denied)
	d.Processes = []telemetry.Part[telemetry.Process]{{Labels: telemetry.ProcessAttributes{ProcessPid: 1}.Labels()}}
	d.Processes[0].Read.Processes.BusyTime.Fail(metric.Unsupported)
	want := map[string][]string{
		"not supported": {"gpu.energy", "gpu.process.busy.time (1 of 1)"},
		"no permission": {"gpu.partition.memory.usage (1 of 1)"},
		"failed":        {"gpu.xid.errors", "gpu.link.up (2 of 3)"},
	}
	if got := absent(nil, &d); !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("absent: %v, want %v", got, want)
	}
	on := func(d *metric.Desc) bool { return d.Name == "gpu.link.up" }
	if got := absent(on, &d); len(got) != 1 || !slices.Equal(got["failed"], want["failed"][1:]) {
		t.Errorf("with gpu.link.up alone: %v", got)
	}
}
