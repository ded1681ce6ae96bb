package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/attribution/kubernetes"
	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/diagnosis"
	"github.com/gpumeter/gpumeter/exporter/doctor"
	"github.com/gpumeter/gpumeter/exporter/parts"
	"github.com/gpumeter/gpumeter/exporter/pci"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
)

// examine prints what is wrong and which workload owns each device, and returns the exit code: 0 when nothing
// needs to be changed. Progress goes to errs; refuse prints why a node cannot be read as set.
func examine(c config.Doctor, out, errs io.Writer, log *slog.Logger, refuse func(error) int) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var r doctor.Report
	var err error
	if c.URL != "" {
		r, err = consult(ctx, c.URL)
	} else {
		c.Kubernetes.APIJitter = 0
		n, wrong := newNode(ctx, c.Node, 0, nil, log)
		if wrong != nil {
			return refuse(wrong)
		}
		r = n.examined(ctx, c.Wait, errs)
	}
	if err == nil {
		err = show(out, &r, c.Format)
	}
	if err != nil {
		fmt.Fprintf(errs, "gpumeter: %v\n", err)
		return exitFailed
	}
	if !r.Healthy() {
		return exitFailed
	}
	return 0
}

func show(out io.Writer, r *doctor.Report, format string) error {
	if format != "json" {
		return r.Text(out)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("report as JSON: %w", err)
	}
	return nil
}

// examined reads the node once the sources are open and the providers of owners have answered, or the time
// has passed.
func (n *node) examined(ctx context.Context, wait time.Duration, progress io.Writer) doctor.Report {
	running, quit := context.WithCancel(ctx)
	var reading parts.Group
	defer unended(&reading) // the report is whole without what hangs
	defer quit()
	n.read(running, &reading)
	start := time.Now()
	n.opened(ctx, wait, progress)
	n.settle(ctx, wait-time.Since(start))
	return n.report(ctx)
}

// slow is how long opening a driver may take before the user is told to wait.
const slow = 2 * time.Second

// opened waits until each source is open or has failed, at most for a time. It says so when that is long.
func (n *node) opened(ctx context.Context, wait time.Duration, progress io.Writer) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	late := time.After(slow)
	for {
		opening := n.opening()
		if len(opening) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-late:
			fmt.Fprintf(progress, "gpumeter: waiting up to %v for the driver of source %s\n", wait, strings.Join(opening, ", "))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// opening returns the sources that are being opened.
func (n *node) opening() (names []string) {
	for _, s := range n.feed.Sources() {
		if !s.Opening.IsZero() {
			names = append(names, s.Name)
		}
	}
	return names
}

// settle waits until each provider of owners has answered or failed, at most for a time.
func (n *node) settle(ctx context.Context, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for n.who.waited() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// waited reports whether a provider has not answered yet.
func (w *witnesses) waited() bool {
	for _, x := range w.state() {
		if x.State == string(kubernetes.Waiting) {
			return true
		}
	}
	return false
}

// state returns how the providers are.
func (w *witnesses) state() (out []doctor.Witness) {
	for _, ask := range w.examine {
		out = append(out, ask()...)
	}
	return out
}

// report explains the node as it is now.
func (n *node) report(ctx context.Context) doctor.Report {
	f := doctor.Facts{Snapshot: n.feed.Snapshot(ctx), On: n.on, Witnesses: n.who.state(), Off: n.attributor == nil}
	f.Machine = n.machine(ctx)
	if n.attributor != nil {
		_, f.Explained = n.attributor.Explain()
	}
	if n.who.strays != nil {
		f.Strays = n.who.strays(f.Snapshot.Devices)
	}
	return doctor.New(f)
}

// machine returns what this machine's files say; nil: the node is simulated.
func (n *node) machine(ctx context.Context) *diagnosis.Machine {
	if n.looker == nil {
		return nil
	}
	m := n.looker.Look(ctx)
	return &m
}

// named is the vendor's key of a device, or of a partition of one.
type named struct {
	vendor string
	kubernetes.Key
}

// strays returns the device IDs allocated to containers that no device of the snapshot has. sys is the host's
// /sys, which shows the devices that are given to virtual machines.
func strays(pods cluster, devices []snapshot.Device, sys string) (out []doctor.Stray) {
	held := pods.Holdings().All()
	if len(held) == 0 {
		return nil
	}
	at := map[named]*attribution.DeviceRef{}
	refs := attribution.References(devices)
	for i := range refs {
		d := &refs[i]
		for _, k := range deviceKeys(d) {
			at[named{d.Vendor, k}] = d
		}
		for p := range d.Partitions {
			at[named{d.Vendor, kubernetes.Key{By: kubernetes.ByMIG, Name: d.Partitions[p].Labels.Get("gpu_partition_uuid")}}] = d
		}
	}
	for i := range held {
		h := &held[i]
		if h.Ref.Monitor || h.Ref.Vendor == "" { // held to be monitored, or no accelerator: a network card, a disk
			continue
		}
		if d := at[named{h.Ref.Vendor, h.Ref.Key}]; d != nil && (h.Ref.By == kubernetes.ByMIG || len(partsOf(d, h.Ref.Part)) > 0) {
			continue
		}
		out = append(out, doctor.Stray{
			Holder: fmt.Sprintf("pod %s/%s (%s)", h.Namespace, h.Pod, h.Container), Resource: h.Resource, ID: h.ID, Names: h.Ref.Key.String(),
			Driver: guest(&h.Ref, sys),
		})
	}
	return out
}

// guest returns the driver that gives a device to a virtual machine; empty: the host has the device. All such
// drivers have VFIO in their names. A TPU is used through VFIO on the host too, and is never a guest's.
func guest(r *kubernetes.Ref, sys string) string {
	var all []string
	switch {
	case r.Vendor == "google":
	case r.By == kubernetes.ByPCI:
		all = []string{r.Name}
	case r.By == kubernetes.ByGroup:
		all = pci.Group(sys, r.Number)
	}
	for _, address := range all {
		if driver := pci.Bound(sys, address); strings.Contains(driver, "vfio") {
			return driver
		}
	}
	return ""
}
