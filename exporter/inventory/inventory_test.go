package inventory

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// told writes what is expected: index, UUID, place and vendor of each, and the number.
func told(e snapshot.Expected) string {
	var out []string
	for _, id := range e.Devices {
		out = append(out, fmt.Sprintf("%d %s %s %s", id.Index, id.UUID, id.PCI, id.Vendor))
	}
	return fmt.Sprintf("%s, %d", strings.Join(out, "; "), e.Count)
}

// Which devices should be there, by the bus, by what was seen and by what is asked for.
func TestExpected(t *testing.T) {
	const one, two, three = "0000:01:00.0", "0000:02:00.0", "0000:03:00.0"
	seen := []snapshot.Device{device("GPU-aaaaaaaa", one, 0, telemetry.StateOK), device("GPU-bbbbbbbb", two, 1, telemetry.StateOK)}
	for name, c := range map[string]struct {
		bus   []function
		seen  []snapshot.Device
		asked []string
		want  string
	}{
		"nothing":                               {nil, nil, nil, ", 0"},
		"bound to its driver":                   {[]function{{one, "0x10de", "nvidia"}}, nil, nil, "-1  0000:01:00.0 nvidia, 0"},
		"bound to none":                         {[]function{{one, "0x10de", ""}}, nil, nil, "-1  0000:01:00.0 nvidia, 0"},
		"bound to nouveau":                      {[]function{{one, "0x10de", "nouveau"}}, nil, nil, ", 0"},
		"of a vendor that is not read":          {[]function{{one, "0x1002", "amdgpu"}}, nil, nil, ", 0"},
		"seen before":                           {nil, seen, nil, "0 GPU-aaaaaaaa 0000:01:00.0 nvidia; 1 GPU-bbbbbbbb 0000:02:00.0 nvidia, 0"},
		"seen before and on the bus":            {[]function{{one, "0x10de", "nvidia"}, {three, "0x10de", "nvidia"}}, seen[:1], nil, "0 GPU-aaaaaaaa 0000:01:00.0 nvidia; -1  0000:03:00.0 nvidia, 0"},
		"seen, now given to a guest":            {[]function{{one, "0x10de", "vfio-pci"}}, seen, nil, "1 GPU-bbbbbbbb 0000:02:00.0 nvidia, 0"},
		"given to a guest but asked by UUID":    {[]function{{one, "0x10de", "vfio-pci"}}, seen[:1], []string{"GPU-aaaaaaaa"}, "0 GPU-aaaaaaaa 0000:01:00.0 nvidia, 0"},
		"given to a guest but asked by address": {[]function{{one, "0x10de", "vfio-pci"}}, nil, []string{one}, "-1  0000:01:00.0 nvidia, 0"},
		"asked by number":                       {nil, nil, []string{"8"}, ", 8"},
		"asked by number and UUID":              {nil, seen[:1], []string{"8", "GPU-cccccccc"}, "0 GPU-aaaaaaaa 0000:01:00.0 nvidia; -1 GPU-cccccccc  nvidia, 8"},
		"asked for what was seen":               {nil, seen[:1], []string{"GPU-aaaaaaaa", one}, "0 GPU-aaaaaaaa 0000:01:00.0 nvidia, 0"},
		"asked for what is on the bus":          {[]function{{one, "0x10de", ""}}, nil, []string{"01:00.0"}, "-1  0000:01:00.0 nvidia, 0"},
		"asked for another vendor's":            {[]function{{one, "0x1002", "amdgpu"}}, nil, []string{one}, "-1  0000:01:00.0 amd, 0"},
	} {
		t.Run(name, func(t *testing.T) {
			x, _ := open(t, "", func(c2 *Config) { c2.Sysfs, c2.Asked = sysfs(t, c.bus...), c.asked })
			x.Stage(picture(c.seen...))
			if got := told(x.Expected()); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// What this build can not read is not expected, unless the user asks for it.
func TestNotRead(t *testing.T) {
	x, _ := open(t, "", func(c *Config) {
		c.Sysfs, c.Asked = sysfs(t, function{"0000:01:00.0", "0x10de", "nvidia"}), []string{"GPU-bbbbbbbb"}
		c.Driver = func(string) string { return "" }
	})
	x.Stage(picture(device("GPU-aaaaaaaa", "0000:02:00.0", 0, telemetry.StateOK)))
	if got, want := told(x.Expected()), "-1 GPU-bbbbbbbb  nvidia, 0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A bus that can not be read whole is said once.
func TestBrokenBus(t *testing.T) {
	root := sysfs(t, function{"0000:01:00.0", "0x10de", ""}, function{"0000:02:00.0", "0x10de", ""})
	class := filepath.Join(root, "bus", "pci", "devices", "0000:02:00.0", "class")
	if err := os.WriteFile(class, []byte("?"), 0o644); err != nil {
		t.Fatal(err)
	}
	x, said := open(t, "", func(c *Config) { c.Sysfs = root })
	for range 3 {
		if got, want := told(x.Expected()), "-1  0000:01:00.0 nvidia, 0"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if n := strings.Count(said.String(), class); n != 1 {
		t.Errorf("said %d times:\n%s", n, said)
	}
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	if got := told(x.Expected()); got != ", 0" || !strings.Contains(said.String(), "no PCI bus") {
		t.Errorf("without a bus: %s\n%s", got, said)
	}
}

func TestParse(t *testing.T) {
	for words, want := range map[string]string{
		"":                                      ", 0",
		"0":                                     ", 0",
		"9":                                     ", 9",
		"GPU-6b1f3c1e-94f5":                     "-1 GPU-6b1f3c1e-94f5  nvidia, 0",
		"0x1234abcd5678":                        "-1 0x1234abcd5678  nvidia, 0",
		"0000:83:00.0 00000000:83:00.0 83:00.0": "-1  0000:83:00.0 nvidia, 0",
		"8 10000:E1:00.0":                       "-1  10000:e1:00.0 nvidia, 8",
		"8 9":                                   "two numbers, 8 and 9",
		"8x":                                    `"8x" is not a number`,
		"-1":                                    `"-1" is not a number`,
		"eight":                                 `"eight" is not a number`,
		"83:00.8":                               `"83:00.8" is not a number`,
		"100000":                                "100000 is more than 1024",
		"99999999999999999999":                  "is more than 1024",
		"GPU-6b1f\"3c1e":                        "is not a number",
	} {
		devices, count, err := parse(strings.Fields(words), "nvidia")
		got := told(snapshot.Expected{Devices: devices, Count: count})
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%s: %s, want %s", words, got, want)
		}
	}
	many := slices.Repeat([]string{""}, maxAsked+1)
	for i := range many {
		many[i] = fmt.Sprintf("GPU-%08d", i)
	}
	if _, _, err := parse(many, "nvidia"); err == nil {
		t.Error("more devices than any machine has")
	}
	if _, err := Open(Config{Asked: []string{"8", "9"}}); err == nil {
		t.Error("opened with two numbers")
	}
}
