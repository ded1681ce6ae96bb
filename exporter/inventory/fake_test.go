package inventory

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/state"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// nvidia is what Config.Driver is where nvml is read.
func nvidia(vendor string) string { return map[string]string{"nvidia": "nvidia"}[vendor] }

// function is an accelerator on the bus, and what is bound to it.
type function struct{ address, vendor, driver string }

// sysfs writes a bus with these functions.
func sysfs(t *testing.T, functions ...function) string {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "bus", "pci", "devices"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range functions {
		dir := filepath.Join(root, "bus", "pci", "devices", f.address)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"class": "0x030200\n", "vendor": f.vendor + "\n", "device": "0x2330\n"} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if f.driver != "" {
			if err := os.Symlink("../drivers/"+f.driver, filepath.Join(dir, "driver")); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

// picture is a snapshot with one device a state, each of its own identity.
func picture(devices ...snapshot.Device) *snapshot.Snapshot {
	return &snapshot.Snapshot{Devices: devices}
}

func device(uuid, place string, index int, how telemetry.State) snapshot.Device {
	d := snapshot.Device{Identity: &telemetry.Identity{UUID: uuid, PCI: place, Index: index, Vendor: "nvidia", Model: "M", Serial: "1650"}}
	d.Read.Presence.State[how].Set(1)
	return d
}

// log keeps what is logged.
type log struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.String()
}

// open returns an inventory with its store in a directory, and what it logs.
func open(t *testing.T, directory string, change func(*Config)) (*Inventory, *log) {
	t.Helper()
	store, err := state.Open(directory)
	if err != nil {
		t.Fatal(err)
	}
	said := new(log)
	cfg := Config{Store: store, Driver: nvidia, Vendor: "nvidia", Logger: slog.New(slog.NewTextHandler(said, nil)), Now: time.Now}
	if change != nil {
		change(&cfg)
	}
	x, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return x, said
}
