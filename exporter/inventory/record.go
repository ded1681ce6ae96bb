package inventory

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// name is what the record is kept under.
const name = "inventory"

const (
	maxDevices = 1024      // kept; the ones not seen for longest go first
	maxText    = 256       // of each word
	stale      = time.Hour // after which the time a device was last seen is worth saving
)

// record is what is kept.
type record struct {
	Devices []entry `json:"devices"`
}

// entry is one device that a source has listed.
type entry struct {
	UUID     string    `json:"uuid"`
	Vendor   string    `json:"vendor"`
	Model    string    `json:"model,omitempty"`
	PCI      string    `json:"pci,omitempty"`
	Serial   string    `json:"serial,omitempty"`
	Index    int       `json:"index"`
	LastSeen time.Time `json:"last_seen"`
}

func (e entry) identity() telemetry.Identity {
	return telemetry.Identity{UUID: e.UUID, Vendor: e.Vendor, Model: e.Model, PCI: e.PCI, Serial: e.Serial, Index: e.Index}
}

// UnmarshalJSON refuses what Stage would not have written: it becomes labels.
func (r *record) UnmarshalJSON(raw []byte) error {
	var read struct{ Devices []entry }
	if err := json.Unmarshal(raw, &read); err != nil {
		return err
	}
	if len(read.Devices) > maxDevices {
		return fmt.Errorf("%d devices; the most is %d", len(read.Devices), maxDevices)
	}
	uuids, places := map[string]bool{}, map[string]bool{}
	for i, e := range read.Devices {
		if err := e.check(); err != nil {
			return fmt.Errorf("device %d: %w", i, err)
		}
		if uuids[e.UUID] || e.PCI != "" && places[e.PCI] {
			return fmt.Errorf("device %d: %s at %s is there twice", i, e.UUID, e.PCI)
		}
		uuids[e.UUID], places[e.PCI] = true, true
	}
	r.Devices = read.Devices
	return nil
}

func (e entry) check() error {
	if e.UUID == "" || e.Vendor == "" {
		return errors.New("no uuid or no vendor")
	}
	if e.PCI != "" && !address.MatchString(e.PCI) {
		return fmt.Errorf("pci %q is no address", e.PCI)
	}
	if e.Index < 0 || e.Index > maxDevices {
		return fmt.Errorf("index %d", e.Index)
	}
	for _, text := range []string{e.UUID, e.Vendor, e.Model, e.Serial} {
		if len(text) > maxText || strings.ContainsFunc(text, unicode.IsControl) {
			return fmt.Errorf("%.40q is no name", text)
		}
	}
	return nil
}

// Stage is a snapshot.Stage: it notes the devices of the picture. It does not wait for a disk.
func (x *Inventory) Stage(s *snapshot.Snapshot) {
	if s.Partial {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	now, changed := x.cfg.Now(), false
	for i := range s.Devices {
		switch d := &s.Devices[i]; d.State() {
		case telemetry.StateOK.String(), telemetry.StateLate.String(), telemetry.StateFailed.String():
			changed = x.note(d.Identity, now) || changed
		}
	}
	for i := range s.Devices { // what was gone when it was first looked at, and is not replaced
		switch d := &s.Devices[i]; d.State() {
		case telemetry.StateLost.String(), telemetry.StateReleased.String():
			if !x.knows(d.Identity) {
				changed = x.note(d.Identity, now) || changed
			}
		}
	}
	if changed {
		x.wake()
	}
}

// note keeps a device in place of whatever stood there before, and says whether that is worth saving.
func (x *Inventory) note(id *telemetry.Identity, now time.Time) bool {
	old := x.seen[id.UUID]
	e := entry{
		UUID: id.UUID, Vendor: id.Vendor, Model: cmp.Or(id.Model, old.Model), PCI: cmp.Or(id.PCI, old.PCI),
		Serial: cmp.Or(id.Serial, old.Serial), Index: id.Index, LastSeen: old.LastSeen,
	}
	if age := now.Sub(old.LastSeen); e == old && age >= 0 && age < stale || e.check() != nil {
		return false
	}
	e.LastSeen = now.UTC().Truncate(time.Second)
	maps.DeleteFunc(x.seen, func(_ string, other entry) bool { return e.PCI != "" && other.PCI == e.PCI })
	if len(x.seen) >= maxDevices {
		delete(x.seen, slices.MinFunc(slices.Collect(maps.Values(x.seen)), func(a, b entry) int { return a.LastSeen.Compare(b.LastSeen) }).UUID)
	}
	x.seen[e.UUID] = e
	return true
}

// knows says whether a device, or another in its place, was seen.
func (x *Inventory) knows(id *telemetry.Identity) bool {
	for _, e := range x.seen {
		if e.UUID == id.UUID || e.PCI != "" && e.PCI == id.PCI {
			return true
		}
	}
	return false
}
