// Package doctor reports what is wrong on this machine and what to do, and, for each device, which workload
// owns it, how the owner is known, or why it is not.
package doctor

import (
	"slices"
	"time"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/diagnosis"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Facts are what a report is made of.
type Facts struct {
	Snapshot  *snapshot.Snapshot
	Machine   *diagnosis.Machine // nil: the node is simulated
	Explained []attribution.Explanation
	On        func(*metric.Desc) bool // the metrics that are read; nil: all
	Witnesses []Witness
	Strays    []Stray
	Off       bool // --attribution=none
}

// Report is what the doctor knows about the node.
type Report struct {
	Taken     time.Time           `json:"taken"`
	Sources   []Source            `json:"sources"`
	Witnesses []Witness           `json:"providers"`
	Devices   []Device            `json:"devices"`
	Strays    []Stray             `json:"unknown_allocations,omitempty"`
	Findings  []diagnosis.Finding `json:"findings"` // the worst first
}

// Source is a source of devices.
type Source struct {
	Name    string `json:"name"`
	State   string `json:"state"`
	Devices int    `json:"devices"`
	Err     string `json:"error,omitempty"`
}

// Witness is a provider of owners: a server, a socket or a directory that attribution reads.
type Witness struct {
	Name   string    `json:"name"`
	Tells  string    `json:"provides"`
	State  string    `json:"state"` // ok, or in a word why there is no response
	Err    string    `json:"error,omitempty"`
	Since  time.Time `json:"since,omitzero"`         // start of the state
	Read   time.Time `json:"last_response,omitzero"` // time of the last response
	Knows  string    `json:"detail,omitempty"`
	Advice string    `json:"advice,omitempty"`
}

// States of a provider that are no faults.
const (
	WitnessOK    = "ok"
	WitnessSpare = "not needed" // another provides the same, or there is nothing to look up
)

// Stray is a device ID that the kubelet has allocated to a container, and that no device here has.
type Stray struct {
	Holder   string `json:"owner"`
	Resource string `json:"resource"`
	ID       string `json:"id"`
	Names    string `json:"meaning"`          // of the ID, from its form
	Driver   string `json:"driver,omitempty"` // the kernel driver through which a virtual machine has the device; empty: none
}

// Device is one device, whole or in parts.
type Device struct {
	Index  int                 `json:"index"`
	Vendor string              `json:"vendor"`
	Model  string              `json:"model"`
	UUID   string              `json:"uuid"`
	PCI    string              `json:"pci,omitempty"`
	State  string              `json:"state"`
	Parts  []Part              `json:"parts,omitempty"`
	Absent map[string][]string `json:"absent,omitempty"` // Prometheus names of metrics without a value, by the reason
}

// Part is a device, or one partition of it.
type Part struct {
	Partition string    `json:"partition,omitempty"` // UUID; empty: the whole device
	ID        string    `json:"partition_id,omitempty"`
	Profile   string    `json:"partition_profile,omitempty"`
	Sharing   string    `json:"sharing"`
	Owners    []Owner   `json:"owners,omitempty"`
	Processes []Process `json:"processes,omitempty"`
	Why       []string  `json:"unknown,omitempty"` // what is not known, and why
}

// Owner is a workload that owns a part.
type Owner struct {
	Who   string  `json:"name"`
	Share float64 `json:"share"`
	How   string  `json:"known_by"`
	Chain string  `json:"created_by,omitempty"`
	Image string  `json:"image,omitempty"`
}

// Process is a process on a part.
type Process struct {
	PID    int64    `json:"pid"`
	Who    string   `json:"owner,omitempty"`
	How    string   `json:"known_by,omitempty"`
	Why    string   `json:"unknown,omitempty"` // why the owner is not known
	Memory *float64 `json:"memory_bytes,omitempty"`
	Busy   *float64 `json:"busy_seconds,omitempty"`
}

// New returns the report.
func New(f Facts) Report {
	r := Report{Taken: f.Snapshot.Taken, Witnesses: f.Witnesses, Strays: f.Strays, Findings: append([]diagnosis.Finding{}, diagnosis.Find(f.Snapshot, f.Machine)...)}
	for _, s := range f.Snapshot.Health.Sources {
		r.Sources = append(r.Sources, Source{s.Name, s.State.String(), s.Devices, s.Err})
	}
	if f.Off {
		r.find(diagnosis.Finding{
			ID: diagnosis.AttributionOff, Severity: diagnosis.Info, Message: "attribution is off (--attribution=none); owners are not looked up",
		})
	}
	for _, w := range f.Witnesses {
		if w.Advice != "" {
			r.find(diagnosis.Finding{
				ID:       diagnosis.AttributionFailing + diagnosis.ID(w.Name+"-"+w.State),
				Severity: diagnosis.Warning, Message: "provider " + w.Name + " (" + w.Tells + ") is " + w.State, Advice: w.Advice,
			})
		}
	}
	for _, d := range f.Snapshot.ByVendor() {
		r.device(&f, d)
	}
	unknown := 0
	for _, s := range f.Strays {
		if s.Driver == "" {
			unknown++
		}
	}
	if unknown > 0 {
		r.find(diagnosis.Finding{
			ID: diagnosis.AllocationUnknown, Severity: diagnosis.Warning, Advice: strayAdvice,
			Message: "pods hold " + plural(unknown, "device ID that no device here has", "device IDs that no device here has"),
		})
	}
	diagnosis.Sort(r.Findings)
	return r
}

// Healthy reports whether nothing needs to be changed.
func (r *Report) Healthy() bool { return len(diagnosis.Worst(r.Findings, diagnosis.Warning)) == 0 }

// find adds a finding, unless the same is there.
func (r *Report) find(f diagnosis.Finding) {
	if !slices.Contains(r.Findings, f) {
		r.Findings = append(r.Findings, f)
	}
}

func (r *Report) device(f *Facts, d *snapshot.Device) {
	id := d.Identity
	out := Device{Index: id.Index, Vendor: id.Vendor, Model: id.Model, UUID: id.UUID, PCI: id.PCI, State: d.State(), Absent: absent(f.On, &d.Read)}
	if denied := len(out.Absent[metric.Denied.Text]); denied > 0 {
		r.find(diagnosis.Finding{
			ID: diagnosis.MetricsDenied, Severity: diagnosis.Info,
			Message: "the driver denies this user " + plural(denied, "metric of a device", "metrics of a device"),
			Advice:  "Run as root to read them, or leave them out with --metrics.exclude.",
		})
	}
	for i := range f.Explained {
		if e := &f.Explained[i]; e.Device == id.UUID {
			p := r.part(e)
			for i := range d.Read.Partitions {
				if l := d.Read.Partitions[i].Labels; p.Partition != "" && l.Get("gpu_partition_uuid") == p.Partition {
					p.ID, p.Profile = l.Get("gpu_partition_id"), l.Get("gpu_partition_profile")
				}
			}
			out.Parts = append(out.Parts, p)
		}
	}
	r.Devices = append(r.Devices, out)
}

func (r *Report) part(e *attribution.Explanation) Part {
	p := Part{Partition: e.Partition, Sharing: e.Sharing.String()}
	for _, h := range e.Holders {
		p.Owners = append(p.Owners, Owner{Who: h.Workload.String(), Share: h.Share, How: h.How, Chain: h.Chain, Image: h.Image})
	}
	lost := 0
	for _, u := range e.Uses {
		one := Process{PID: u.PID, Memory: number(u.Memory), Busy: number(u.Busy)}
		if u.Workload.Type == telemetry.WorkloadTypeUnattributed {
			one.Why = u.How
			lost++
			if u.How != NotSeen || !slices.ContainsFunc(e.Uses, func(u attribution.Use) bool { return u.Workload.Type != telemetry.WorkloadTypeUnattributed }) {
				r.unplaced(u.How) // a process that has ended meanwhile is not in /proc either
			}
		} else {
			one.Who, one.How = u.Workload.String(), u.How
		}
		p.Processes = append(p.Processes, one)
	}
	p.Why = why(e, lost)
	return p
}

// unplaced adds the finding about processes without an owner, if something can be done about them.
func (r *Report) unplaced(why string) {
	if a := processAdvice[why]; a != "" {
		r.find(diagnosis.Finding{
			ID: diagnosis.ProcessUnknown, Severity: diagnosis.Warning, Message: "the owner of a process is not known: " + why, Advice: a,
		})
	}
}

// why says what is not known of a part. lost is how many of its processes have no owner.
func why(e *attribution.Explanation, lost int) (out []string) {
	if e.Sharing == telemetry.SharingNone {
		switch {
		case lost > 0:
			out = append(out, "not allocated to any pod or job; "+plural(lost, "process has", "processes have")+" no known owner")
		case e.Listed:
			out = append(out, "not allocated to any pod or job; no process uses it")
		default:
			out = append(out, "not allocated to any pod or job; the driver returned no process list")
		}
	} else if !e.Listed {
		out = append(out, "the driver returned no process list")
	}
	if e.MemoryWhy != nil {
		out = append(out, "memory by process is not available: "+e.MemoryWhy.Text)
	}
	if e.BusyWhy != nil {
		out = append(out, "busy time by process is not available: "+e.BusyWhy.Text)
	}
	if e.Sharing == telemetry.SharingShared && (e.BusyWhy != nil || !e.Listed) {
		out = append(out, "busy time and energy cannot be split between the owners; they are unattributed")
	}
	return out
}

func number(v metric.Value) *float64 {
	if n, ok := v.Get(); ok {
		return &n
	}
	return nil
}
