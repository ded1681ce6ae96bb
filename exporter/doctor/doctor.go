// Package doctor explains, for each device, whose it is, how that is known, and what to change where it is not.
package doctor

import (
	"slices"
	"time"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Facts are what a report is made of.
type Facts struct {
	Snapshot  *snapshot.Snapshot
	Explained []attribution.Explanation
	On        func(*metric.Desc) bool // the metrics that are read; nil: all
	Witnesses []Witness
	Strays    []Stray
	Off       bool // nobody is asked whose work it is: --attribution=none
}

// Report says whose each device is, and why that is not known.
type Report struct {
	Taken     time.Time `json:"taken"`
	Sources   []Source  `json:"sources"`
	Witnesses []Witness `json:"witnesses"`
	Devices   []Device  `json:"devices"`
	Strays    []Stray   `json:"strays,omitempty"`
	Advice    []string  `json:"advice,omitempty"` // what to change
}

// Source is where devices are read.
type Source struct {
	Name    string `json:"name"`
	State   string `json:"state"`
	Devices int    `json:"devices"`
	Err     string `json:"error,omitempty"`
}

// Witness is one that is asked whose work it is.
type Witness struct {
	Name   string    `json:"name"`
	Tells  string    `json:"tells"`
	State  string    `json:"state"` // ok, or in a word why it tells nothing, or nothing newer
	Err    string    `json:"error,omitempty"`
	Since  time.Time `json:"since,omitzero"` // since when it is so
	Read   time.Time `json:"read,omitzero"`  // when it told something last
	Knows  string    `json:"knows,omitempty"`
	Advice string    `json:"advice,omitempty"`
}

// States of a witness that are no faults.
const (
	WitnessOK    = "ok"         // it answers
	WitnessSpare = "not needed" // it is not asked, since another tells the same, or there is nothing to ask of
)

// Stray is an id that a container holds, and that names no device that is read here.
type Stray struct {
	Holder   string `json:"holder"`
	Resource string `json:"resource"`
	ID       string `json:"id"`
	Names    string `json:"names"`            // what its form says that it names
	Driver   string `json:"driver,omitempty"` // of the kernel, that has it for a virtual machine; empty: nobody knows it
}

// Device is one device, whole or in parts.
type Device struct {
	Index  int                 `json:"index"`
	Vendor string              `json:"vendor"`
	Model  string              `json:"model"`
	UUID   string              `json:"uuid"`
	State  string              `json:"state"`
	Parts  []Part              `json:"parts,omitempty"`
	Absent map[string][]string `json:"absent,omitempty"` // metrics without a number, by why that is so
}

// Part is a device, or one partition of it.
type Part struct {
	Partition string    `json:"partition,omitempty"`
	Sharing   string    `json:"sharing"`
	Owners    []Owner   `json:"owners,omitempty"`
	Processes []Process `json:"processes,omitempty"`
	Why       []string  `json:"why,omitempty"` // what is not known
}

// Owner holds a part.
type Owner struct {
	Who   string  `json:"who"`
	Share float64 `json:"share"`
	How   string  `json:"how"` // it is known
	Chain string  `json:"chain,omitempty"`
	Image string  `json:"image,omitempty"`
}

// Process is one on a part.
type Process struct {
	PID    int64    `json:"pid"`
	Who    string   `json:"who,omitempty"`
	How    string   `json:"how,omitempty"`
	Why    string   `json:"why,omitempty"` // nobody knows whose it is
	Memory *float64 `json:"memory_bytes,omitempty"`
	Busy   *float64 `json:"busy_seconds,omitempty"`
}

// New makes the report.
func New(f Facts) Report {
	r := Report{Taken: f.Snapshot.Taken, Witnesses: f.Witnesses, Strays: f.Strays}
	for _, s := range f.Snapshot.Health.Sources {
		r.Sources = append(r.Sources, Source{s.Name, s.State.String(), s.Devices, s.Err})
		r.advise(sourceAdvice[s.State])
	}
	if f.Off {
		r.advise("nobody is asked whose work it is: leave out --attribution=none")
	}
	for _, w := range f.Witnesses {
		r.advise(w.Advice)
	}
	for i := range f.Snapshot.Devices {
		r.device(&f, &f.Snapshot.Devices[i])
	}
	if slices.ContainsFunc(f.Strays, func(s Stray) bool { return s.Driver == "" }) {
		r.advise(strayAdvice)
	}
	return r
}

// advise adds advice once.
func (r *Report) advise(what string) {
	if what != "" && !slices.Contains(r.Advice, what) {
		r.Advice = append(r.Advice, what)
	}
}

func (r *Report) device(f *Facts, d *snapshot.Device) {
	id := d.Identity
	out := Device{Index: id.Index, Vendor: id.Vendor, Model: id.Model, UUID: id.UUID, State: d.State(), Absent: absent(f.On, &d.Read)}
	for i := range f.Explained {
		if e := &f.Explained[i]; e.Device == id.UUID {
			out.Parts = append(out.Parts, r.part(e))
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
				r.advise(processAdvice[u.How]) // one that has ended meanwhile is not seen either
			}
		} else {
			one.Who, one.How = u.Workload.String(), u.How
		}
		p.Processes = append(p.Processes, one)
	}
	p.Why = why(e, lost)
	return p
}

// why says what is not known of a part whose processes, but for those lost, are known.
func why(e *attribution.Explanation, lost int) (out []string) {
	if e.Sharing == telemetry.SharingNone {
		switch {
		case lost > 0:
			out = append(out, "nobody was given it, and "+plural(lost, "process", "processes")+" on it could not be placed")
		case e.Listed:
			out = append(out, "nobody was given it, and no process is on it")
		default:
			out = append(out, "nobody was given it, and the driver does not tell of processes")
		}
	} else if !e.Listed {
		out = append(out, "the driver does not tell of processes")
	}
	if e.MemoryWhy != nil {
		out = append(out, "memory by process: "+e.MemoryWhy.Text)
	}
	if e.BusyWhy != nil {
		out = append(out, "busy time by process: "+e.BusyWhy.Text)
	}
	if e.Sharing == telemetry.SharingShared && (e.BusyWhy != nil || !e.Listed) {
		out = append(out, "so what its sharers work and draw can not be told apart: it is unattributed")
	}
	return out
}

func number(v metric.Value) *float64 {
	if n, ok := v.Get(); ok {
		return &n
	}
	return nil
}
