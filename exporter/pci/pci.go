// Package pci lists the accelerators on the PCI bus, whether a driver has them or not.
package pci

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Device is a function of the PCI bus that is an accelerator.
type Device struct {
	Address  string // as the kernel writes it: 0000:83:00.0
	Vendor   string // the word telemetry.Identity has for it: nvidia
	VendorID uint16
	DeviceID uint16
	Class    uint32 // 24 bits: class, subclass, programming interface
	Driver   string // that is bound to it; empty: none
}

// Classes, from the PCI Code and ID Assignment Specification.
const (
	classDisplay     = 0x03   // the highest 8 bits
	classAccelerator = 0x1200 // the highest 16
)

// vendors make accelerators; the numbers are of the PCI SIG's registry.
var vendors = map[uint16]string{
	0x10de: "nvidia",
	0x1002: "amd",
	0x8086: "intel",
	0x1da3: "habana",
	0x1e52: "tenstorrent",
	0x1ae0: "google",
	0x1d0f: "amazon",
	0x19e5: "huawei",
	0xcabc: "cambricon",
	0x1ed5: "moorethreads",
	0x9999: "metax",
	0x1d94: "hygon",
	0x17cb: "qualcomm",
}

// address is the kernel's form; behind a bridge such as Intel's VMD a domain has more than 4 digits.
var address = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// maxFunctions is far above what any machine has, virtual functions included.
const maxFunctions = 1 << 16

// List returns the accelerators below sysfs, usually /sys, by address. Virtual functions are parts
// of a device that is listed, and left out. A function that can not be read costs only itself: the
// error names it, and the others are returned with it. Where there is no PCI bus the error is an fs.ErrNotExist.
func List(sysfs string) ([]Device, error) {
	bus := filepath.Join(sysfs, "bus", "pci", "devices")
	dir, err := os.Open(bus)
	if err != nil {
		return nil, fmt.Errorf("pci: %w", err)
	}
	defer dir.Close() //nolint:errcheck // it was only read
	names, err := dir.Readdirnames(maxFunctions)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("pci: %w", err)
	}
	slices.Sort(names)
	var out []Device
	var faults []error
	for _, name := range names {
		d, is, err := read(filepath.Join(bus, name))
		if err != nil {
			faults = append(faults, fmt.Errorf("pci: %w", err))
		} else if is {
			out = append(out, d)
		}
	}
	return out, errors.Join(faults...)
}

// read says whether a function is an accelerator, and which.
func read(dir string) (d Device, is bool, err error) {
	d.Address = filepath.Base(dir)
	if !address.MatchString(d.Address) {
		return d, false, fmt.Errorf("%s: not an address", dir)
	}
	class, err := number(dir, "class", 24)
	if err != nil || class>>16 != classDisplay && class>>8 != classAccelerator {
		return d, false, err
	}
	vendor, err := number(dir, "vendor", 16)
	if err != nil {
		return d, false, err
	}
	d.Class, d.VendorID = class, uint16(vendor)
	if d.Vendor = vendors[d.VendorID]; d.Vendor == "" {
		return d, false, nil
	}
	device, err := number(dir, "device", 16)
	if err != nil {
		return d, false, err
	}
	d.DeviceID = uint16(device)
	if virtual, err := target(dir, "physfn"); virtual != "" || err != nil {
		return d, false, err
	}
	d.Driver, err = target(dir, "driver")
	return d, err == nil, err
}

// number reads a file such as "0x030200\n".
func number(dir, name string, bits int) (uint32, error) {
	path := filepath.Join(dir, name)
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	raw := make([]byte, 16)
	n, err := io.ReadFull(f, raw)
	if err == nil {
		return 0, fmt.Errorf("%s: more than a number", path)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return 0, err
	}
	text := strings.TrimSuffix(string(raw[:n]), "\n")
	digits, ok := strings.CutPrefix(text, "0x")
	v, err := strconv.ParseUint(digits, 16, bits)
	if !ok || err != nil || len(digits) != bits/4 {
		return 0, fmt.Errorf("%s: %q is not 0x and %d digits", path, text, bits/4)
	}
	return uint32(v), nil
}

// target is the last word of where a link points to; empty: there is none.
func target(dir, name string) (string, error) {
	to, err := os.Readlink(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return filepath.Base(to), nil
}
