package main

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"

	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// deviceChoice is which devices are read, as patterns. Without any it is all of them.
type deviceChoice []string

func chooseDevices(patterns []string) (deviceChoice, error) {
	var faults []error
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			faults = append(faults, fmt.Errorf("pattern %q: %w", p, err))
		}
	}
	return patterns, config.Refuse("devices", errors.Join(faults...))
}

// has says whether a device is read: its index, UUID or PCI address is a pattern or matches one.
func (c deviceChoice) has(id *telemetry.Identity) bool {
	return len(c) == 0 || slices.ContainsFunc(c, func(p string) bool { return matches(p, id) })
}

func matches(pattern string, id *telemetry.Identity) bool {
	return slices.ContainsFunc([]string{strconv.Itoa(id.Index), id.UUID, id.PCI}, func(word string) bool {
		ok, err := path.Match(pattern, word)
		return ok && err == nil
	})
}

// unmet are the patterns that match no device of the picture but what is missing.
func (c deviceChoice) unmet(s *snapshot.Snapshot) []string {
	var out []string
	for _, p := range c {
		if !slices.ContainsFunc(s.Devices, func(d snapshot.Device) bool {
			return d.State() != telemetry.StateMissing.String() && matches(p, d.Identity)
		}) {
			out = append(out, p)
		}
	}
	return out
}
