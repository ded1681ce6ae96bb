package pci

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// Bound is the driver that has a function; empty: none has, or there is no such function.
func Bound(sysfs, address string) string {
	link, err := os.Readlink(filepath.Join(sysfs, "bus", "pci", "devices", filepath.Base(address), "driver"))
	if err != nil {
		return ""
	}
	return filepath.Base(link)
}

// mostInGroup is how many functions of an IOMMU group are looked at; all of a board are one.
const mostInGroup = 64

// Group are the functions of an IOMMU group, which a virtual machine gets together: the n of /dev/vfio/n.
func Group(sysfs string, n int) []string {
	dir, err := os.Open(filepath.Join(sysfs, "kernel", "iommu_groups", strconv.Itoa(n), "devices"))
	if err != nil {
		return nil
	}
	defer dir.Close() //nolint:errcheck // it was only read
	names, _ := dir.Readdirnames(mostInGroup)
	return names
}

// Responds reports whether a function answers reads of its configuration space. One that has fallen off the
// bus returns all bits set. Where the space cannot be read the answer is true: nothing speaks against it.
func Responds(sysfs, address string) bool {
	f, err := os.Open(filepath.Join(sysfs, "bus", "pci", "devices", filepath.Base(address), "config"))
	if err != nil {
		return true
	}
	defer f.Close() //nolint:errcheck // it was only read
	var vendor [2]byte
	if _, err := io.ReadFull(f, vendor[:]); err != nil {
		return true
	}
	return vendor != [2]byte{0xff, 0xff}
}
