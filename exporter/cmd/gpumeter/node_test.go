package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// reader lists what the test says.
type reader struct {
	devices []source.Device
	err     error
}

func (r reader) Devices(context.Context) ([]source.Device, error) { return r.devices, r.err }
func (r reader) Close() error                                     { return nil }

// A simulated node stands in for an absent one, never for a sick one.
func TestAnyDevice(t *testing.T) {
	opens := func(r source.Reader, err error) func(context.Context) (source.Reader, error) {
		return func(context.Context) (source.Reader, error) { return r, err }
	}
	for name, c := range map[string]struct {
		open func(context.Context) (source.Reader, error)
		want bool
	}{
		"no driver":                {opens(nil, source.ErrAbsent), false},
		"not built":                {opens(nil, source.ErrUnbuilt), false},
		"the host":                 {opens(reader{}, nil), false},
		"a driver with no device":  {opens(reader{err: source.ErrAbsent}, nil), false},
		"a device":                 {opens(reader{devices: []source.Device{nil}}, nil), true},
		"a driver that fails":      {opens(nil, errors.New("version mismatch")), true},
		"a driver that can't list": {opens(reader{err: errors.New("lost")}, nil), true},
		"a driver that panics":     {func(context.Context) (source.Reader, error) { panic("x") }, true},
		"a driver that hangs":      {func(ctx context.Context) (source.Reader, error) { <-ctx.Done(); return nil, ctx.Err() }, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			start := time.Now()
			sources := []source.Source{{Name: "nvml", Open: c.open}, {Name: "host", Open: opens(reader{}, nil)}}
			got := anyDevice(ctx, sources, 2*time.Second, slog.New(slog.DiscardHandler))
			if took := time.Since(start); got != c.want || took > 2*time.Second {
				t.Errorf("%s: %v after %v, want %v", name, got, took, c.want)
			}
		})
	}
}

// A source is opened when one of its metrics is on, or one the feed makes of its devices.
func TestNeeded(t *testing.T) {
	for _, c := range []struct {
		include, exclude []string
		want             []string
	}{
		{nil, nil, []string{"nvml"}},
		{[]string{"system"}, nil, []string{"nvml", "host"}},
		{[]string{"system"}, []string{"gpu.*"}, []string{"host"}},
		{nil, []string{"clock", "ecc", "memory", "power", "thermal", "throttle", "utilization", "xid"}, []string{"nvml"}},
		{nil, []string{"gpu.*"}, nil},
	} {
		on, err := metric.Select(telemetry.Descs(), c.include, c.exclude)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range needed([]source.Source{{Name: "nvml"}, {Name: "host"}}, on) {
			got = append(got, s.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("include %v, exclude %v: %v, want %v", c.include, c.exclude, got, c.want)
		}
	}
}

// A vendor's devices are expected only where a source that reads them is asked: not when all of its
// metrics are off, and not beside a simulated node.
func TestDriver(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*config.Node)
		want   string
	}{
		"read":      {func(*config.Node) {}, "nvidia"},
		"off":       {func(n *config.Node) { n.Metrics.Exclude = []string{"gpu.*"} }, ""},
		"simulated": {func(n *config.Node) { n.Simulate = "h100x8" }, ""},
	} {
		var cfg config.Node
		c.change(&cfg)
		n, err := newNode(t.Context(), cfg, 0, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if got := n.driver("nvidia"); got != c.want || n.driver("amd") != "" {
			t.Errorf("%s: %q, want %q; amd %q", name, got, c.want, n.driver("amd"))
		}
	}
}

// What can not be is refused before anything is read.
func TestNewNodeRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, cfg := range map[string]config.Node{
		"--state.directory":               {StateDirectory: filepath.Join(file, "below")},
		"--expected-devices: two numbers": {ExpectedDevices: []string{"8", "9"}},
		"--devices: pattern":              {Devices: []string{"[a"}},
		"--metrics.include: pattern \"sytem\" matches no group and no metric; did you mean \"system\"?\n--metrics.exclude: pattern \"[\"": {Metrics: config.Metrics{Include: []string{"sytem"}, Exclude: []string{"["}}},
		"--metrics.exclude: system.memory.limit is both included":                                                                         {Metrics: config.Metrics{Include: []string{"system"}, Exclude: []string{"system.memory.limit"}}},
		"--simulate: \"a\" is not a model":                        {Simulate: "h100,a"},
		"--kubernetes.node: \"/\" is not a name of a node":        {Kubernetes: config.Kubernetes{Node: "/"}},
		"--kubernetes.pod-labels: \"a b\" is neither a name":      {Kubernetes: config.Kubernetes{PodLabels: []string{"a b"}}},
		"--kubernetes.pod-annotations: \"a b\" is neither a name": {Kubernetes: config.Kubernetes{PodAnnotations: []string{"a b"}}},
	} {
		_, err := newNode(t.Context(), cfg, 0, nil, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if code := printErrors(err, io.Discard); code != exitUsage {
			t.Errorf("%s: exit code %d, want %d", want, code, exitUsage)
		}
	}
	locked := filepath.Join(t.TempDir(), "locked") // no setting is wrong when the machine refuses
	if code := printErrors(fmt.Errorf("--state.directory: %w", &os.PathError{Op: "mkdir", Path: locked, Err: os.ErrPermission}), io.Discard); code != exitFailed {
		t.Errorf("a directory that cannot be made: exit code %d, want %d", code, exitFailed)
	}
}
