package kernellog

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestRecord(t *testing.T) {
	for line, want := range map[string]record{
		"6,339,5140900,-;NVRM: loaded":                          {true, 339, 5140900 * time.Microsecond, "NVRM: loaded"},
		"7,160,424069,-;pci 0000:00:02.0\n SUBSYSTEM=pci\n X=;": {true, 160, 424069 * time.Microsecond, "pci 0000:00:02.0"},
		"12,340,1,-,caller=T17,more;from a process":             {false, 340, time.Microsecond, "from a process"},
		"3,0,0,c;":            {true, 0, 0, ""},
		"0,1,2,-;a;b":         {true, 1, 2 * time.Microsecond, "a;b"},
		"8,1,2,-;NVRM: Xid (": {false, 1, 2 * time.Microsecond, "NVRM: Xid ("},
	} {
		if got, ok := parseRecord([]byte(line)); !ok || got != want {
			t.Errorf("%q: %+v, %v, want %+v", line, got, ok, want)
		}
	}
	for _, line := range []string{
		"", ";", "6,1,2;no flags", "6,1;x", "6,1,2,-", "-6,1,2,-;x", "6,x,2,-;x", "6,1,,-;x", "6, 1,2,-;x", "+6,1,2,-;x",
		"6,18446744073709551615,2,-;x", "6,1,18446744073709551615,-;x", "[ 12.5] NVRM: Xid (PCI:0000:83:00): 79",
	} {
		if got, ok := parseRecord([]byte(line)); ok {
			t.Errorf("%q passes for a record: %+v", line, got)
		}
	}
}

func TestText(t *testing.T) {
	const uuid = "GPU-c4a80165-86e4-bfbb-ecfa-1d81a70b138a"
	for text, want := range map[string]saying{
		"NVRM: Xid (PCI:0000:83:00): 79, pid=1234, name=python3, GPU has fallen off the bus.": {"0000:83:00.0", 79, "", "pid=1234, name=python3, GPU has fallen off the bus."},
		"NVRM: Xid (PCI:0000:8A:00): 13, Graphics SM Warp Exception":                          {"0000:8a:00.0", 13, "", "Graphics SM Warp Exception"},
		"NVRM: Xid (0000:83:00): 48":                                  {"0000:83:00.0", 48, "", ""},
		"NVRM: Xid (PCI:0000:b3:00.0): 79, x":                         {"0000:b3:00.0", 79, "", "x"},
		"NVRM: Xid (PCI:00010000:0b:00): 79, x":                       {"10000:0b:00.0", 79, "", "x"},
		"NVRM: Xid (PCI:00000000:0b:00): 79, x":                       {"0000:0b:00.0", 79, "", "x"},
		"NVRM: Xid (PCI:0000:01:00 GPU-I:05): 43, pid=7":              {"0000:01:00.0", 43, "", "pid=7"},
		"NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 31, pid=7":    {"0000:01:00.0", 31, "", "pid=7"},
		"NVRM: Xid (PCI:0000:83:00): 154 GPU recovery action changed": {"0000:83:00.0", 154, "", "GPU recovery action changed"},
		"NVRM: Xid (PCI:0000:83:00): 13, name=x): 79, y":              {"0000:83:00.0", 13, "", "name=x): 79, y"},
		"NVRM: GPU 0000:83:00.0: GPU has fallen off the bus.":         {pci: "0000:83:00.0"},
		"NVRM: GPU at 0000:83:00.0 has fallen off the bus.":           {pci: "0000:83:00.0"},
		"NVRM: GPU at PCI:0000:83:00: " + uuid:                        {pci: "0000:83:00.0", uuid: uuid},
	} {
		if got, ok := parseText(text); !ok || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		// Not at the beginning: names of processes can be anything.
		"python NVRM: Xid (PCI:0000:83:00): 79, x", " NVRM: Xid (PCI:0000:83:00): 79", "nvrm: Xid (PCI:0000:83:00): 79",
		"NVRM: loading NVRM: Xid (PCI:0000:83:00): 79", "NVRM: x\\x0aNVRM: Xid (PCI:0000:83:00): 79",
		// Of a switch, not of a device.
		"nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 12028, Non-fatal",
		// Not of the form.
		"NVRM: Xid (PCI:0000:83:00): ", "NVRM: Xid (PCI:0000:83:00): x", "NVRM: Xid (PCI:0000:83:00): 0, x", "NVRM: Xid (PCI:0000:83:00): 79x",
		"NVRM: Xid (PCI:0000:83:00): 79000, x", "NVRM: Xid (PCI:0000:83:00): -79", "NVRM: Xid (PCI:0000:83:00: 79", "NVRM: Xid (PCI:0000:83:0): 79",
		"NVRM: Xid (PCI:83:00): 79", "NVRM: Xid (PCI:0000:83:00.8): 79", "NVRM: Xid (PCI:0000:83:00 name=\"a\"): 79, x", "NVRM: Xid (PCI:0000:83:00,5): 79",
		"NVRM: Xid (PCI:123456789:83:00): 79", "NVRM: Xid (): 79", "NVRM: Xid", "NVRM: ", "NVRM:",
		"NVRM: GPU 0000:83:00.0: RmInitAdapter failed!", "NVRM: GPU at PCI:0000:83:00: GPU-nonsense", "NVRM: GPU at PCI:0000:83:00: " + uuid + "0",
		"NVRM: GPU at PCI:0000:83:00: MIG" + strings.TrimPrefix(uuid, "GPU"),
	} {
		if got, ok := parseText(text); ok {
			t.Errorf("%q is heard as %+v", text, got)
		}
	}
}

var address = regexp.MustCompile(`^([0-9a-f]{4}|[1-9a-f][0-9a-f]{4,7}):[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// Whatever stands in the log, what is made of it is of the form.
func FuzzRecord(f *testing.F) {
	for _, seed := range []string{
		"3,339,5140900,-;NVRM: Xid (PCI:0000:83:00): 79, pid=1234, name=python3, GPU has fallen off the bus.",
		"3,1,2,-;NVRM: Xid (PCI:00010000:8A:00 GPU-I:05): 13",
		"3,1,2,-;NVRM: GPU 0000:83:00.0: GPU has fallen off the bus.",
		"3,1,2,-;NVRM: GPU at PCI:0000:83:00: GPU-c4a80165-86e4-bfbb-ecfa-1d81a70b138a",
		"7,160,424069,-;pci 0000:00:02.0\n SUBSYSTEM=pci",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, ok := parseRecord(line)
		if !ok {
			return
		}
		if r.since < 0 || strings.Contains(r.text, "\n") {
			t.Errorf("%q: %+v", line, r)
		}
		s, ok := parseText(r.text)
		if !ok {
			return
		}
		if !address.MatchString(s.pci) || s.code > 9999 || s.uuid != "" && (s.code != 0 || !isUUID(s.uuid)) || !strings.HasPrefix(r.text, "NVRM: ") {
			t.Errorf("%q: %+v", line, s)
		}
	})
}
