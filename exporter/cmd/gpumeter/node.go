package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/diagnosis"
	"github.com/gpumeter/gpumeter/exporter/downtime"
	"github.com/gpumeter/gpumeter/exporter/health"
	"github.com/gpumeter/gpumeter/exporter/inventory"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/parts"
	"github.com/gpumeter/gpumeter/exporter/self"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/source/all"
	"github.com/gpumeter/gpumeter/exporter/source/host"
	"github.com/gpumeter/gpumeter/exporter/source/nvml"
	"github.com/gpumeter/gpumeter/exporter/source/sim"
	"github.com/gpumeter/gpumeter/exporter/state"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// node is what is read, and which of it is shown.
type node struct {
	feed      *snapshot.Feed
	inventory *inventory.Inventory
	on        func(*metric.Desc) bool
	devices   deviceChoice
	downtime  *downtime.Downtime
	looker    *diagnosis.Looker // nil: the node is simulated

	attributor *attribution.Attributor // nil: nobody is asked whose work it is
	who        witnesses
}

// newNode puts the parts together; no device is read before the feed runs, and what was seen is not
// saved before the inventory does. The feed tells of a source that only a new process can read; nobody
// listens to that who reads once.
func newNode(ctx context.Context, c config.Node, maxAge time.Duration, stale func(string, error), log *slog.Logger) (*node, error) {
	on, err := chooseMetrics(telemetry.Descs(), c.Metrics)
	if err != nil {
		return nil, err
	}
	devices, err := chooseDevices(c.Devices)
	if err != nil {
		return nil, err
	}
	kept, err := openState(c.StateDirectory, log)
	if err != nil {
		return nil, err
	}
	position, age := kept, time.Duration(0) // of the kernel's log; one reading must not move that of the exporter that runs
	if stale == nil {
		position, age = state.Store{}, sim.AtWork
	}
	tenants := new(sim.Tenants)
	sources, simulated, err := chooseSources(ctx, c, on, position, age, tenants, log)
	if err != nil {
		return nil, err
	}
	n := &node{on: on, devices: devices}
	seen := inventory.Config{Asked: c.ExpectedDevices, Driver: n.driver, Vendor: "nvidia", Logger: log}
	if !simulated { // else nothing of this machine is shown, and nothing is to be remembered
		seen.Sysfs, seen.Store = c.HostSys, kept
		n.looker = diagnosis.NewLooker(diagnosis.Config{Sys: c.HostSys, Proc: c.HostProc, Dev: c.HostDev, Library: c.NVMLLibrary})
	}
	if n.inventory, err = inventory.Open(seen); err != nil {
		return nil, config.Refuse("expected-devices", err)
	}
	judge := health.New(time.Now())
	stages := []snapshot.Stage{{Name: "health", Run: judge.Stage, Partial: func(s, _ *snapshot.Snapshot) { judge.Stage(s) }}}
	n.downtime = downtime.Open(seen.Store, time.Now(), log)
	ours := self.Config{Build: build(), StateFaults: kept.Faults, Downtime: n.downtime.Seconds, Hold: c.WorkloadHold}
	if c.Attribution != "none" {
		n.who = onSimulated(tenants)
		if !simulated {
			if n.who, err = onHost(c, log); err != nil {
				return nil, err
			}
		}
		n.attributor = newAttributor(c, n.who, log)
		stages = append(stages, snapshot.Stage{Name: "attribution", Run: n.attributor.Stage, Partial: n.attributor.Partial})
		ours.Attribution = n.asked
		ours.Target = n.who.target
	}
	if ours.Target == nil && !simulated { // the node's name is known all the same
		ours.Target = func() self.Target { return self.Target{Node: c.Kubernetes.Node} }
	}
	exporter, shown := self.New(ours), showProcesses(c.ProcessLimit)
	stages = append(stages,
		snapshot.Stage{Name: "processes", Run: shown, Partial: func(s, _ *snapshot.Snapshot) { shown(s) }},
		snapshot.Stage{Name: "self", Run: exporter.Stage, Partial: exporter.Partial},
		snapshot.Stage{Name: "inventory", Run: n.inventory.Stage},
	)
	n.feed = snapshot.NewFeed(snapshot.Config{
		Sources:  needed(sources, on),
		Stages:   stages,
		Devices:  devices.has,
		Expected: n.inventory.Expected,
		Stale:    stale,
		MaxAge:   maxAge,
		Timeout:  c.ReadTimeout,
		Relist:   c.RelistInterval,
		Retry:    c.RetryInterval,
		Hold:     c.WorkloadHold,
		Logger:   log,
	})
	return n, nil
}

// run reads the node until reading ends. It saves what it has seen until saving ends, and once more then:
// first, so that neither requests in flight nor a driver that hangs take the time for it.
func (n *node) run(saving, reading context.Context, all *parts.Group) {
	all.Go("inventory", func() { n.inventory.Run(saving) })
	all.Go("downtime", func() { n.downtime.Run(saving) })
	n.read(reading, all)
}

// read reads the node, and polls the providers of owners, until the context ends.
func (n *node) read(ctx context.Context, all *parts.Group) {
	all.Watch(prefixed("feed ", n.feed.Running)) // it gives up on sources that hang
	all.GoNamed(func() []string { return nil }, func() { n.feed.Run(ctx) })
	for _, p := range n.who.run {
		all.GoNamed(prefixed("provider ", p.names), func() { p.run(ctx) })
	}
	if n.attributor != nil {
		all.Go("attribution", func() { n.attributor.Run(ctx, func(ctx context.Context) { n.feed.Snapshot(ctx) }) })
	}
}

// prefixed puts a word before each name.
func prefixed(word string, names func() []string) func() []string {
	return func() (out []string) {
		for _, name := range names() {
			out = append(out, word+name)
		}
		return out
	}
}

// driver is the kernel driver of a vendor whose devices a source of this build reads.
func (n *node) driver(vendor string) string {
	for _, s := range n.feed.Sources() {
		if vendor == "nvidia" && s.Name == "nvml" && s.State != telemetry.SourceStateUnbuilt {
			return "nvidia"
		}
	}
	return ""
}

// chooseSources returns this machine's sources, or a simulated node when that was asked for; age is how long
// that one has been running.
func chooseSources(ctx context.Context, c config.Node, on func(*metric.Desc) bool, kept state.Store, age time.Duration, tenants *sim.Tenants, log *slog.Logger) (sources []source.Source, simulated bool, err error) {
	hostSource := host.New(host.Config{Proc: c.HostProc})
	if c.Simulate != "" {
		s, err := simulate(c, c.Simulate, age, tenants, log)
		if err != nil {
			return nil, false, err
		}
		log.Warn("reading a SIMULATED node; no number of a device is real", "node", c.Simulate)
		return []source.Source{s, hostSource}, true, nil
	}
	kernelLog := c.KernelLog
	if kernelLog == "none" {
		kernelLog = ""
	}
	local := all.Sources(all.Config{
		NVML: nvml.Config{
			Library: c.NVMLLibrary, On: on, Logger: log, Proc: c.HostProc, Processes: max(c.ProcessLimit, mostProcesses),
			Sys: c.HostSys, Timeout: c.ReadTimeout, Probe: probeCommand(c.NVMLLibrary), KernelLog: kernelLog, State: kept, Retry: c.RetryInterval,
			Hold:   c.WorkloadHold,
			Owners: c.Attribution != "none",
		},
		Host: host.Config{Proc: c.HostProc},
	})
	if !c.SimulateIfNone || anyDevice(ctx, local, c.ReadTimeout, log) {
		return local, false, nil
	}
	const node = "h100x8"
	log.Warn("this machine has no accelerator gpumeter can read; reading a SIMULATED node instead", "node", node)
	s, err := simulate(c, node, age, tenants, log)
	return []source.Source{s, hostSource}, true, err
}

// mostProcesses of one device are read to say whose work is on it, however many are shown.
const mostProcesses = 1024

// showProcesses leaves the largest processes of each device in the picture.
func showProcesses(most int) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		for i := range s.Devices {
			r := &s.Devices[i].Read
			r.Processes = r.Processes[:min(len(r.Processes), max(most, 0))]
		}
	}
}

// probeCommand runs this binary as a process of its own that initialises NVML.
func probeCommand(library string) []string {
	command := []string{"/proc/self/exe", "nvml-probe"}
	if library != "" {
		command = append(command, "--nvml.library="+library)
	}
	return command
}

// anyDevice says whether a source has a device here, or has a driver that fails or hangs: a sick
// machine is shown as it is, not as a simulated one.
func anyDevice(ctx context.Context, sources []source.Source, timeout time.Duration, log *slog.Logger) bool {
	found := make(chan bool, len(sources))
	for _, s := range sources {
		go func() { found <- hasDevice(ctx, s, log) }()
	}
	late := time.After(timeout)
	for range sources {
		select {
		case has := <-found:
			if has {
				return true
			}
		case <-late:
			return true
		}
	}
	return false
}

// hasDevice opens a source to see; one that lists nothing, and no error, is the host.
func hasDevice(ctx context.Context, s source.Source, log *slog.Logger) (has bool) {
	defer func() { has = recover() != nil || has }()
	var devices []source.Device
	reader, err := s.Open(ctx)
	if err == nil {
		devices, err = reader.Devices(ctx)
		if closing := reader.Close(); closing != nil {
			log.Warn("source did not close", "source", s.Name, "err", closing)
		}
	}
	if errors.Is(err, source.ErrAbsent) || errors.Is(err, source.ErrUnbuilt) {
		log.Info("no accelerator", "source", s.Name, "err", err)
		return false
	}
	return err != nil || len(devices) > 0
}

// needed leaves out sources none of whose metrics is on. What the feed itself says of devices
// takes every source that gives any.
func needed(sources []source.Source, on func(*metric.Desc) bool) []source.Source {
	wanted := func(name string) bool {
		return slices.ContainsFunc(telemetry.Descs(), func(d *metric.Desc) bool {
			return on(d) && slices.Contains(d.Sources, name)
		})
	}
	devices := func(name string) bool {
		return slices.ContainsFunc(telemetry.DeviceFamilies, func(f telemetry.Family[telemetry.Device]) bool {
			return slices.Contains(f.Desc.Sources, name)
		})
	}
	return slices.DeleteFunc(sources, func(s source.Source) bool {
		return !wanted(s.Name) && !(devices(s.Name) && wanted("feed"))
	})
}
