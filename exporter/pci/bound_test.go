package pci

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestBoundAndGroup(t *testing.T) {
	sys := t.TempDir()
	for _, dir := range []string{"bus/pci/devices/0000:65:00.0", "bus/pci/devices/0000:66:00.0", "kernel/iommu_groups/42/devices/0000:65:00.0"} {
		if err := os.MkdirAll(filepath.Join(sys, filepath.FromSlash(dir)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../../bus/pci/drivers/vfio-pci", filepath.Join(sys, "bus", "pci", "devices", "0000:65:00.0", "driver")); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{"0000:65:00.0": "vfio-pci", "0000:66:00.0": "", "0000:67:00.0": "", "../0000:65:00.0": "vfio-pci", "": ""} {
		if got := Bound(sys, address); got != want {
			t.Errorf("%q: %q has it, want %q", address, got, want)
		}
	}
	for n, want := range map[int][]string{42: {"0000:65:00.0"}, 43: nil} {
		if got := Group(sys, n); !slices.Equal(got, want) {
			t.Errorf("group %d: %q, want %q", n, got, want)
		}
	}
}

func TestResponds_AllBitsSetIsNoDevice(t *testing.T) {
	sysfs := t.TempDir()
	dir := filepath.Join(sysfs, "bus", "pci", "devices", "0000:1a:00.0")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for config, want := range map[string]bool{"\xde\x10\x30\x23": true, "\xff\xff\xff\xff": false, "\xff\x10": true, "\xff": true, "": true} {
		if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := Responds(sysfs, "0000:1a:00.0"); got != want {
			t.Errorf("configuration space %q: responds %v, want %v", config, got, want)
		}
	}
	if !Responds(sysfs, "0000:1b:00.0") {
		t.Error("a function without a configuration space that can be read counts as one that does not respond")
	}
}
