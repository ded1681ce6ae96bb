// Package snapshot keeps the node's picture at one instant, and takes a new one when it is too old.
package snapshot

import (
	"strings"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Snapshot is the node at one instant. It is never changed once published.
type Snapshot struct {
	Taken   time.Time
	Partial bool                               // for a scrape that could not wait: owners and workloads are those of the last complete one; not kept
	Devices []Device                           // by vendor and index; one that does not answer is there, without readings
	Host    *telemetry.Host                    // nil when nothing reads the host
	Engines []telemetry.Part[telemetry.Engine] // those that answered, in the order of their sources
	Self    telemetry.Self
	Health  Health

	// Whose work it is; a stage fills these in.
	Owners    []telemetry.Part[telemetry.Owner]    // one for each device or partition
	Workloads []telemetry.Part[telemetry.Workload] // one for each workload on each device or partition
	Details   []telemetry.Part[telemetry.Detail]
	Usages    []telemetry.Part[telemetry.Usage] // the ledger
}

// Device is one device at that instant.
type Device struct {
	Identity *telemetry.Identity
	Labels   *metric.Labels // who the device is; on its counters, whose identity must not change with its owner
	Owned    *metric.Labels // the same and who owns it; on its gauges
	Read     telemetry.Device
}

// State names the state that holds, as the label does.
func (d *Device) State() string {
	for i, v := range d.Read.Presence.State {
		if n, _ := v.Get(); n == 1 {
			return telemetry.State(i).String()
		}
	}
	return ""
}

// Whose names the workload that owns the device, for people: namespace/pod, job and user, or unit.
// It is empty when nobody does, or several do.
func (d *Device) Whose() string {
	if pod := d.Owned.Get("k8s_pod_name"); pod != "" {
		return d.Owned.Get("k8s_namespace_name") + "/" + pod
	}
	if job := d.Owned.Get("slurm_job_id"); job != "" {
		return strings.TrimSpace("job " + job + " " + d.Owned.Get("slurm_user"))
	}
	return d.Owned.Get("process_unit")
}

// Health is how reading went, since the exporter started.
type Health struct {
	Reads   uint64 // rounds of reading
	Sources []SourceHealth
	Faults  []Fault
}

// SourceHealth is how one source is.
type SourceHealth struct {
	Name     string
	State    telemetry.SourceState
	Err      string            // why it is not serving
	Devices  int               // it lists
	Duration *metric.Histogram // seconds, per device and read that has ended, late ones too; nil: none has
}

// Fault counts readings that failed where a number was to be expected.
type Fault struct {
	Source string // or the Stage that failed
	Metric string // "*" when the whole device was not read
	Reason string
	Count  uint64
}
