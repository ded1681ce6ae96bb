package sim

import (
	"regexp"
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func TestParse(t *testing.T) {
	for node, want := range map[string]string{
		"h100x8":               "h100 h100 h100 h100 h100 h100 h100 h100",
		"H100x1 , mi300xx2":    "h100 mi300x mi300x",
		"h100migx2,h100x1":     "h100mig h100mig h100",
		"h100x1,a100x1,h100x1": "h100 a100 h100",
		"mixed":                "h100 h100 h100mig b200 a100 l40s rtx4090 mi300x gaudi3",
		"h100x2,mi300x":        "h100 h100 mi300x",
		"h100":                 "h100",
		"h100mig,gaudi3":       "h100mig gaudi3",
		"Mixed":                "h100 h100 h100mig b200 a100 l40s rtx4090 mi300x gaudi3",
	} {
		slots, _, err := parse(node)
		var got []string
		for _, s := range slots {
			got = append(got, s.board.id)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("parse(%q) = %v, %v; want %s", node, got, err, want)
		}
	}
	if slots, _, err := parse("h100x64"); err != nil || len(slots) != 64 {
		t.Errorf("64 boards: %d, %v", len(slots), err)
	}
}

func TestParseFaults(t *testing.T) {
	for node, want := range map[string][]string{
		"":                     {`"" is not a model`, "models are h100, h100mig, h200"},
		"h10x8":                {`"h10x8": no model "h10"`, `did you mean "h100"?`, "models are h100, h100mig, h200", "nodes are mixed"},
		"mi300x8":              {`no model "mi300"`, `did you mean "mi300x"?`},
		"h100mg":               {`"h100mg" is not a model`, `did you mean "h100mig"?`},
		"h100x8,nofault":       {`"nofault" is not a model, MODELxCOUNT, a node or a fault; models are h100`, "faults are engine-slow", "gpu-idle; with slurm"},
		"h100x8,slrum":         {`did you mean "slurm"?`},
		"h100mgx1":             {`did you mean "h100mig"?`},
		"mixd":                 {`"mixd" is not a model, MODELxCOUNT, a node or a fault; did you mean "mixed"?`},
		"h100x0":               {`"h100x0": the count "0" is not a number from 1 to 64`},
		"h100x65":              {`the count "65"`},
		"h100x-1":              {`the count "-1"`},
		"h100x":                {`the count ""`},
		"h100xtwo":             {`the count "two"`},
		"h100x8,":              {`"" is not a model`},
		"x8":                   {`"x8" is not a model`},
		"8":                    {`"8" is not a model`},
		"h100x40,a100x25":      {"has 65 devices; the most is 64"},
		"h100x2,zzzzx1,a100xy": {`no model "zzzz"; models`, `the count "y"`}, // all at once
	} {
		_, err := New(Config{Node: node})
		if err == nil {
			t.Errorf("New(%q) has no fault", node)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("New(%q): %v\nwant %s", node, err, w)
			}
		}
	}
}

func TestIdentity(t *testing.T) {
	forms := map[string]*regexp.Regexp{
		nvidia: regexp.MustCompile(`^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`),
		amd:    regexp.MustCompile(`^[0-9a-f]{16}$`),
		intel:  regexp.MustCompile(`^01P0-HL3251A0-18-S[0-9A-F]{5}-\d\d-\d\d-\d\d$`),
	}
	pci := regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:00\.0$`)
	_, devices := start(t, strings.Join(modelIDs(), "x7,")+"x7", 7)
	seen := map[string]bool{}
	for i, d := range devices {
		id := d.Identity()
		if !strings.HasPrefix(id.Model, "Simulated ") {
			t.Errorf("%q is not honest", id.Model)
		}
		if id.Index != i || !forms[id.Vendor].MatchString(id.UUID) || !pci.MatchString(id.PCI) || id.PCI != telemetry.NormalizePCI(id.PCI) {
			t.Errorf("board %d: %+v", i, *id)
		}
		for _, unique := range []string{id.UUID, id.PCI, id.Serial} {
			if seen[unique] && unique != "" {
				t.Errorf("two boards have %s", unique)
			}
			seen[unique] = true
		}
		if id.Architecture == "" || id.DriverVersion == "" || id.FirmwareVersion == "" {
			t.Errorf("board %d says too little: %+v", i, *id)
		}
		if cuda := id.Vendor == nvidia; (id.CUDAVersion != "") != cuda || (id.ComputeCapability != "") != cuda {
			t.Errorf("board %d of %s: CUDA %q, %q", i, id.Vendor, id.CUDAVersion, id.ComputeCapability)
		}
		if consumer := strings.Contains(id.Model, "GeForce"); (id.Serial == "") != consumer {
			t.Errorf("%s has serial %q", id.Model, id.Serial)
		}
	}
}
