package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/attribution/kubernetes"
	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/doctor"
	"github.com/gpumeter/gpumeter/exporter/pci"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
)

// examine prints whose each device is and why, and returns the exit code: 0 when nothing is to be changed.
func examine(c config.Doctor, out io.Writer, log *slog.Logger, refuse func(error) int) int {
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
		r = n.examined(ctx, c.Wait)
	}
	if err == nil {
		err = show(out, &r, c.Format)
	}
	if err != nil {
		log.Error("no report", "err", err)
		return exitFailed
	}
	if len(r.Advice) > 0 {
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

// examined looks for itself: it waits for whoever is asked, and no longer than that, before it reads.
func (n *node) examined(ctx context.Context, patience time.Duration) doctor.Report {
	running, quit := context.WithCancel(ctx)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer quit()
	reading.Go(func() { n.read(running) })
	n.settle(ctx, patience)
	return n.report(ctx)
}

// settle waits until everybody who is asked has answered or failed, and no longer than that.
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

// waited says whether somebody has not answered yet.
func (w *witnesses) waited() bool {
	for _, x := range w.state() {
		if x.State == string(kubernetes.Waiting) {
			return true
		}
	}
	return false
}

// state is how all are who are asked.
func (w *witnesses) state() (out []doctor.Witness) {
	for _, ask := range w.examine {
		out = append(out, ask()...)
	}
	return out
}

// report explains the node as it is now.
func (n *node) report(ctx context.Context) doctor.Report {
	f := doctor.Facts{Snapshot: n.feed.Snapshot(ctx), On: n.on, Witnesses: n.who.state(), Off: n.attributor == nil}
	if n.attributor != nil {
		_, f.Explained = n.attributor.Explain()
	}
	if n.who.strays != nil {
		f.Strays = n.who.strays(f.Snapshot.Devices)
	}
	return doctor.New(f)
}

// mostReport bounds what is read of another exporter's answer, bytes.
const mostReport = 64 << 20

// consult asks an exporter that runs.
func consult(ctx context.Context, url string) (r doctor.Report, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+"/debug/attribution?format=json", nil)
	if err != nil {
		return r, fmt.Errorf("--url: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return r, fmt.Errorf("--url: %w", err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	if answer.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 512))
		return r, fmt.Errorf("%s answers %s: %s", url, answer.Status, strings.TrimSpace(string(said)))
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, mostReport)).Decode(&r); err != nil {
		return r, fmt.Errorf("%s: %w", url, errors.Join(errNoReport, err))
	}
	return r, nil
}

var errNoReport = errors.New("not a report of gpumeter")

// named is how an id names a device, or a partition of one.
type named struct {
	vendor string
	kubernetes.Key
}

// strays are what containers hold and no device that is read here is. Below sys the kernel says which of
// them virtual machines have.
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
		if h.Ref.Monitor || h.Ref.Vendor == "" { // to be looked at, or no accelerator: a network card, a disk
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

// guest is the driver that has a device for a virtual machine; empty: none has. All drivers that do have VFIO
// in their names. A TPU is used through it on the host too.
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
