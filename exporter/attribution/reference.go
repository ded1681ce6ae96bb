package attribution

import (
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// DeviceRef identifies a device for claims. It shares nothing with the snapshot that a later stage changes,
// so claims can be computed at any time.
type DeviceRef struct {
	*telemetry.Identity
	Up         bool // it answered
	Partitions []PartitionRef
}

// PartitionRef identifies a partition of a device for claims.
type PartitionRef struct {
	Labels *metric.Labels
	Info   []metric.Keyed // of gpu.partition.info
}

// Reference returns the reference to a device.
func Reference(d *snapshot.Device) DeviceRef {
	up, _ := d.Read.Presence.Up.Get()
	ref := DeviceRef{Identity: d.Identity, Up: up == 1}
	for i := range d.Read.Partitions {
		p := &d.Read.Partitions[i]
		ref.Partitions = append(ref.Partitions, PartitionRef{p.Labels, p.Read.Partitions.Info})
	}
	return ref
}

// References returns the references to all devices of a snapshot.
func References(devices []snapshot.Device) []DeviceRef {
	refs := make([]DeviceRef, len(devices))
	for i := range devices {
		refs[i] = Reference(&devices[i])
	}
	return refs
}
