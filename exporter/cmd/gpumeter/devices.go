package main

import (
	"fmt"
	"path"
	"strconv"
	"sync"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// deviceChoice is which devices are read. Without patterns it is all of them.
type deviceChoice struct {
	patterns []string

	mu  sync.Mutex
	met map[string]bool // patterns that a device has matched
}

func chooseDevices(patterns []string) (*deviceChoice, error) {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf("devices: pattern %q: %w", p, err)
		}
	}
	return &deviceChoice{patterns: patterns, met: map[string]bool{}}, nil
}

// has says whether a device is read: its index, UUID or PCI address is a pattern or matches one.
func (c *deviceChoice) has(id *telemetry.Identity) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	chosen := len(c.patterns) == 0
	for _, p := range c.patterns {
		for _, word := range []string{strconv.Itoa(id.Index), id.UUID, id.PCI} {
			if ok, err := path.Match(p, word); ok && err == nil {
				chosen, c.met[p] = true, true
			}
		}
	}
	return chosen
}

// unmet are the patterns that no device has matched so far.
func (c *deviceChoice) unmet() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, p := range c.patterns {
		if !c.met[p] {
			out = append(out, p)
		}
	}
	return out
}
