package sim

import (
	"strings"
	"testing"
)

// What is told of a board in labels is of its model; what names one board names no other.
func TestPlatform(t *testing.T) {
	_, devices := start(t, strings.Join(modelIDs(), "x2,")+"x2", 1)
	seen := map[string]bool{}
	for i, d := range devices {
		b, x := d.(*device).board, read(t, d)
		if b.vendor != nvidia {
			if len(x.Platform.Info)+len(x.Platform.FirmwareInfo) > 0 {
				t.Errorf("%s tells what only NVIDIA's driver is asked for", b.id)
			}
			continue
		}
		at, runs := x.Platform.Info[0], x.Platform.FirmwareInfo[0]
		if number(t, at.Value) != 1 || number(t, runs.Value) != 1 {
			t.Errorf("%s: %v, %v; always 1", b.id, at.Value, runs.Value)
		}
		for _, unique := range []string{at.Labels.Get("gpu_platform_guid"), runs.Labels.Get("gpu_pdi")} {
			if seen[unique] {
				t.Errorf("two boards have %s", unique)
			}
			seen[unique] = unique != ""
		}
		if guid := at.Labels.Get("gpu_platform_guid") != ""; guid != (b.id == "b200") {
			t.Errorf("%s has a GUID in the fabric: %v", b.id, guid)
		}
		if got, want := runs.Labels.Get("gpu_gsp_version"), b.driver; got != want {
			t.Errorf("%s: the GSP runs %q, its driver is %q", b.id, got, want)
		}
		if ecc := runs.Labels.Get("gpu_inforom_ecc") != ""; ecc != b.ecc {
			t.Errorf("%s has an InfoROM object of error correction: %v, error correction: %v", b.id, ecc, b.ecc)
		}
		if minor := at.Labels.Get("gpu_minor"); minor == "" || seen["minor "+minor] {
			t.Errorf("board %d of %s is /dev/nvidia%s", i, b.id, minor)
		} else {
			seen["minor "+minor] = true
		}
	}
}
