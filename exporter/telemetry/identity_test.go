package telemetry

import "testing"

func TestNormalizePCI(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"00000000:83:00.0", "0000:83:00.0"},
		{"0000:83:00.0", "0000:83:00.0"},
		{"0000C05B:0A:00.0", "c05b:0a:00.0"},
		{"00010000:01:00.0", "10000:01:00.0"},
		{" 0000:AF:00.1\n", "0000:af:00.1"},
		{"83:00.0", "83:00.0"},
		{"00000000", "00000000"},
		{"", ""},
	} {
		if got := NormalizePCI(c.in); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.in, got, c.want)
		}
	}
}

// What every series carries does not depend on what only gpu.info tells.
func TestLabelsOfIdentity(t *testing.T) {
	id := Identity{UUID: "GPU-1", Index: 3, Vendor: "nvidia", Model: "H100", PCI: "0000:01:00.0", DriverVersion: "580"}
	if got, want := id.Labels().Text(), `gpu_uuid="GPU-1",gpu_index="3",gpu_vendor="nvidia",gpu_model="H100"`; got != want {
		t.Errorf("labels %s, want %s", got, want)
	}
	if got, want := id.Info().Text(), `gpu_pci_address="0000:01:00.0",gpu_driver_version="580"`; got != want {
		t.Errorf("info %s, want %s", got, want)
	}
}
