package pci

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// function is what sysfs says of one.
type function struct{ class, vendor, device, driver, physfn string }

// sysfs writes a tree of functions; an empty text is a file that is not there.
func sysfs(t testing.TB, functions map[string]function) string {
	t.Helper()
	root := t.TempDir()
	bus := filepath.Join(root, "bus", "pci", "devices")
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(bus, 0o755))
	for address, f := range functions {
		dir := filepath.Join(root, "devices", "pci0000:00", address) // the bus has links, as the kernel makes them
		must(os.MkdirAll(dir, 0o755))
		must(os.Symlink(dir, filepath.Join(bus, address)))
		for name, text := range map[string]string{"class": f.class, "vendor": f.vendor, "device": f.device} {
			if text != "" {
				must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
			}
		}
		if f.driver != "" {
			must(os.Symlink("../../../bus/pci/drivers/"+f.driver, filepath.Join(dir, "driver")))
		}
		if f.physfn != "" {
			must(os.Symlink("../"+f.physfn, filepath.Join(dir, "physfn")))
		}
	}
	return root
}

func TestList(t *testing.T) {
	root := sysfs(t, map[string]function{
		"0000:83:00.0":  {"0x030200\n", "0x10de\n", "0x2330\n", "nvidia", ""},
		"0000:84:00.0":  {"0x030200\n", "0x10de\n", "0x2330\n", "", ""},
		"0000:85:00.0":  {"0x030000\n", "0x10de\n", "0x1b80\n", "vfio-pci", ""},
		"0000:85:00.1":  {"0x040300\n", "0x10de\n", "0x10f0\n", "snd_hda_intel", ""}, // its audio
		"0000:86:00.0":  {"0x068000\n", "0x10de\n", "0x22a3\n", "nvidia-nvswitch", ""},
		"0000:87:00.0":  {"0x120000\n", "0x1002\n", "0x74a1\n", "amdgpu", ""},
		"0000:88:00.0":  {"0x120000", "0x1da3", "0x1020", "habanalabs", ""},
		"0000:03:00.0":  {"0x030000\n", "0x1a03\n", "0x2000\n", "ast", ""}, // a board's management controller
		"0000:83:00.4":  {"0x030200\n", "0x10de\n", "0x2330\n", "nvidia", "0000:83:00.0"},
		"10000:e1:00.0": {"0x038000\n", "0x8086\n", "0x0bd5\n", "xe", ""},
		"0000:00:00.0":  {"0x060000\n", "0x8086\n", "0x29c0\n", "", ""},
	})
	got, err := List(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []Device{
		{"0000:83:00.0", "nvidia", 0x10de, 0x2330, 0x030200, "nvidia"},
		{"0000:84:00.0", "nvidia", 0x10de, 0x2330, 0x030200, ""},
		{"0000:85:00.0", "nvidia", 0x10de, 0x1b80, 0x030000, "vfio-pci"},
		{"0000:87:00.0", "amd", 0x1002, 0x74a1, 0x120000, "amdgpu"},
		{"0000:88:00.0", "habana", 0x1da3, 0x1020, 0x120000, "habanalabs"},
		{"10000:e1:00.0", "intel", 0x8086, 0x0bd5, 0x038000, "xe"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// What is broken is named and costs itself.
func TestBroken(t *testing.T) {
	good := function{"0x030200\n", "0x10de\n", "0x2330\n", "nvidia", ""}
	for name, c := range map[string]struct {
		address string
		with    func(*function)
		names   string
	}{
		"no class":         {"0000:84:00.0", func(f *function) { f.class = "" }, "84:00.0/class"},
		"empty class":      {"0000:84:00.0", func(f *function) { f.class = "\n" }, "84:00.0/class"},
		"short class":      {"0000:84:00.0", func(f *function) { f.class = "0x0302\n" }, "84:00.0/class"},
		"no number":        {"0000:84:00.0", func(f *function) { f.class = "0x03zz00\n" }, "84:00.0/class"},
		"signed number":    {"0000:84:00.0", func(f *function) { f.class = "0x+30200\n" }, "84:00.0/class"},
		"decimal number":   {"0000:84:00.0", func(f *function) { f.class = "00030200\n" }, "84:00.0/class"},
		"endless class":    {"0000:84:00.0", func(f *function) { f.class = "0x030200" + strings.Repeat("0", 1<<20) }, "84:00.0/class"},
		"two lines":        {"0000:84:00.0", func(f *function) { f.class = "0x030200\n\n" }, "84:00.0/class"},
		"no vendor":        {"0000:84:00.0", func(f *function) { f.vendor = "" }, "84:00.0/vendor"},
		"long vendor":      {"0000:84:00.0", func(f *function) { f.vendor = "0x110de\n" }, "84:00.0/vendor"},
		"no device":        {"0000:84:00.0", func(f *function) { f.device = "" }, "84:00.0/device"},
		"no address":       {"..84", func(*function) {}, "..84"},
		"slot 8":           {"0000:84:00.8", func(*function) {}, "84:00.8"},
		"upper-case digit": {"0000:8A:00.0", func(*function) {}, "8A:00.0"},
	} {
		bad := good
		c.with(&bad)
		got, err := List(sysfs(t, map[string]function{"0000:83:00.0": good, c.address: bad}))
		if len(got) != 1 || got[0].Address != "0000:83:00.0" {
			t.Errorf("%s: got %+v, want the good one", name, got)
		}
		if err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: error %v, want it to name %s", name, err, c.names)
		}
	}
}

func TestDriverIsNoLink(t *testing.T) {
	root := sysfs(t, map[string]function{"0000:83:00.0": {"0x030200\n", "0x10de\n", "0x2330\n", "", ""}})
	if err := os.WriteFile(filepath.Join(root, "devices", "pci0000:00", "0000:83:00.0", "driver"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := List(root); len(got) != 0 || err == nil || !strings.Contains(err.Error(), "83:00.0/driver") {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestNoBus(t *testing.T) {
	if got, err := List(t.TempDir()); got != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, %v; want fs.ErrNotExist", got, err)
	}
}

// Whatever a file holds, it is a number of so many digits or an error.
func FuzzNumber(f *testing.F) {
	for _, seed := range []string{"0x030200\n", "0x10de", "", "\n", "0x", "0xffffff\n", "0X030200\n", "0x_30200\n"} {
		f.Add(seed)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(filepath.Join(dir, "class"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		n, err := number(dir, "class", 24)
		if err == nil && (n > 0xffffff || len(strings.TrimSuffix(text, "\n")) != 8) {
			t.Errorf("%q is %#x", text, n)
		}
	})
}
