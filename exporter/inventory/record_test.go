package inventory

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// during runs an inventory while the test does something, and then stops it.
func during(x *Inventory, do func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { x.Run(ctx); close(ended) }()
	do()
	cancel()
	<-ended
}

// Every device that a source listed is known to the next run, and no other. Two with one serial number are two.
func TestRestart(t *testing.T) {
	for name, c := range map[string]struct {
		pictures [][]snapshot.Device
		want     string
	}{
		"seen": {[][]snapshot.Device{{
			device("a", "0000:01:00.0", 0, telemetry.StateOK), device("b", "0000:02:00.0", 1, telemetry.StateLate),
			device("c", "0000:03:00.0", 2, telemetry.StateFailed), device("d", "0000:04:00.0", 3, telemetry.StateLost),
		}}, "0 a 0000:01:00.0 nvidia; 1 b 0000:02:00.0 nvidia; 2 c 0000:03:00.0 nvidia; 3 d 0000:04:00.0 nvidia, 0"},
		"missing": {[][]snapshot.Device{{
			device("a", "0000:01:00.0", 0, telemetry.StateMissing), device("", "0000:02:00.0", 1, telemetry.StateMissing),
		}}, ", 0"},
		"no UUID": {[][]snapshot.Device{{device("", "0000:02:00.0", 1, telemetry.StateOK)}}, ", 0"},
		"lost later": {[][]snapshot.Device{
			{device("a", "0000:01:00.0", 0, telemetry.StateOK)}, {device("a", "0000:01:00.0", 0, telemetry.StateLost)},
		}, "0 a 0000:01:00.0 nvidia, 0"},
		"replaced in its place": {[][]snapshot.Device{
			{device("a", "0000:01:00.0", 0, telemetry.StateOK)},
			{device("a", "0000:01:00.0", 0, telemetry.StateLost), device("b", "0000:01:00.0", 1, telemetry.StateOK)},
			{device("a", "0000:01:00.0", 0, telemetry.StateReleased), device("b", "0000:01:00.0", 1, telemetry.StateReleased)},
		}, "1 b 0000:01:00.0 nvidia, 0"},
		"each in the other's place": {[][]snapshot.Device{
			{device("a", "0000:01:00.0", 0, telemetry.StateOK), device("b", "0000:02:00.0", 1, telemetry.StateOK)},
			{device("a", "0000:02:00.0", 0, telemetry.StateOK), device("b", "0000:01:00.0", 1, telemetry.StateOK)},
		}, "0 a 0000:02:00.0 nvidia; 1 b 0000:01:00.0 nvidia, 0"},
		"no place": {[][]snapshot.Device{
			{device("a", "", 0, telemetry.StateOK), device("b", "", 1, telemetry.StateOK)},
		}, "0 a  nvidia; 1 b  nvidia, 0"},
		"a name no device has": {[][]snapshot.Device{
			{device("a\x00", "", 0, telemetry.StateOK), device(strings.Repeat("b", 1000), "", 1, telemetry.StateOK), device("c", "accel0", 2, telemetry.StateOK)},
		}, ", 0"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			x, _ := open(t, dir, nil)
			during(x, func() {
				for _, devices := range c.pictures {
					x.Stage(picture(devices...))
				}
			})
			next, said := open(t, dir, nil)
			if got := told(next.Expected()); got != c.want || said.String() != "" {
				t.Errorf("got\n%s\nwant\n%s\n%s", got, c.want, said)
			}
		})
	}
}

func TestEntry(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 5, 4, 3, 2, 1, 999, time.UTC)
	x, _ := open(t, dir, func(c *Config) { c.Now = func() time.Time { return now } })
	during(x, func() { x.Stage(picture(device("GPU-a", "0000:01:00.0", 7, telemetry.StateOK))) })
	raw, err := os.ReadFile(filepath.Join(dir, "inventory.json"))
	if err != nil {
		t.Fatal(err)
	}
	var kept map[string][]map[string]any
	if err := json.Unmarshal(raw, &kept); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(kept["devices"])
	want := "[map[index:7 last_seen:2026-05-04T03:02:01Z model:M pci:0000:01:00.0 serial:1650 uuid:GPU-a vendor:nvidia]]"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The file is written when something changed, and once an hour for when devices were last seen.
func TestSavedWhenChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		x, _ := open(t, dir, nil)
		file := filepath.Join(dir, "inventory.json")
		written := func(do func()) bool {
			os.Remove(file) //nolint:errcheck // it may not be there
			do()
			synctest.Wait()
			_, err := os.Stat(file)
			return err == nil
		}
		during(x, func() {
			a := device("a", "0000:01:00.0", 0, telemetry.StateOK)
			for i, c := range []struct {
				picture *snapshot.Snapshot
				after   time.Duration
				want    bool
			}{
				{picture(), 0, false},
				{&snapshot.Snapshot{Partial: true, Devices: []snapshot.Device{a}}, 0, false},
				{picture(a), 0, true},
				{picture(a), time.Minute, false},
				{picture(device("a", "0000:01:00.0", 4, telemetry.StateOK)), 0, true},
				{picture(device("a", "0000:01:00.0", 4, telemetry.StateLost)), 2 * time.Hour, false},
				{picture(device("a", "0000:01:00.0", 4, telemetry.StateOK)), 0, true},
			} {
				if got := written(func() { time.Sleep(c.after); x.Stage(c.picture) }); got != c.want {
					t.Errorf("step %d: written %v, want %v", i, got, c.want)
				}
			}
		})
	})
}

// A file that is not ours is named, counted and begun anew.
func TestDamaged(t *testing.T) {
	good := `{"uuid": "a", "vendor": "nvidia", "pci": "0000:01:00.0"}`
	for name, raw := range map[string]string{
		"half written":     `{"devices": [{"uuid": "a`,
		"no object":        `[]`,
		"no UUID":          `{"devices": [{"vendor": "nvidia"}]}`,
		"no vendor":        `{"devices": [{"uuid": "a"}]}`,
		"twice":            `{"devices": [` + good + `, {"uuid": "a", "vendor": "nvidia"}]}`,
		"two in one place": `{"devices": [` + good + `, {"uuid": "b", "vendor": "nvidia", "pci": "0000:01:00.0"}]}`,
		"place":            `{"devices": [{"uuid": "a", "vendor": "nvidia", "pci": "slot 1"}]}`,
		"index":            `{"devices": [{"uuid": "a", "vendor": "nvidia", "index": -1}]}`,
		"huge index":       `{"devices": [{"uuid": "a", "vendor": "nvidia", "index": 100000}]}`,
		"name":             `{"devices": [{"uuid": "a\u0000", "vendor": "nvidia"}]}`,
		"long name":        `{"devices": [{"uuid": "a", "vendor": "nvidia", "model": "` + strings.Repeat("x", 300) + `"}]}`,
		"type":             `{"devices": [{"uuid": 7, "vendor": "nvidia"}]}`,
		"too many":         `{"devices": [` + strings.Repeat(good+",", maxDevices) + good + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "inventory.json")
			if err := os.WriteFile(file, []byte(raw), 0o600); err != nil {
				t.Fatal(err)
			}
			x, said := open(t, dir, nil)
			if !strings.Contains(said.String(), file) || x.cfg.Store.Faults() != 1 || len(x.Expected().Devices) != 0 {
				t.Errorf("%d faults, %s\n%s", x.cfg.Store.Faults(), told(x.Expected()), said)
			}
			during(x, func() { x.Stage(picture(device("new", "", 0, telemetry.StateOK))) })
			if next, said := open(t, dir, nil); told(next.Expected()) != "0 new  nvidia, 0" {
				t.Errorf("begun anew: %s\n%s", told(next.Expected()), said)
			}
		})
	}
}

// A directory that can not be written is said once and counted each time; when it can be again,
// nothing is lost.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state")
		x, said := open(t, dir, nil)
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		during(x, func() {
			x.Stage(picture(device("a", "0000:01:00.0", 0, telemetry.StateOK)))
			time.Sleep(10*again + time.Second)
			if n := strings.Count(said.String(), "can not be kept"); n != 1 || x.cfg.Store.Faults() != 11 {
				t.Errorf("said %d times, %d faults", n, x.cfg.Store.Faults())
			}
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			time.Sleep(again)
			if !strings.Contains(said.String(), "kept again") {
				t.Errorf("%s", said)
			}
		})
		if next, _ := open(t, dir, nil); told(next.Expected()) != "0 a 0000:01:00.0 nvidia, 0" {
			t.Errorf("kept %s", told(next.Expected()))
		}
	})
}

// The record does not grow for ever: the device not seen for longest goes.
func TestRecordIsLimited(t *testing.T) {
	now := time.Now()
	x, _ := open(t, "", func(c *Config) { c.Now = func() time.Time { return now } })
	for i := range maxDevices + 10 {
		now = now.Add(time.Minute)
		x.Stage(picture(device(fmt.Sprintf("GPU-%04d", i), "", 0, telemetry.StateOK)))
	}
	if got := x.entries(); len(got) != maxDevices || got[0].UUID != "GPU-0010" {
		t.Errorf("%d devices, the first is %s", len(got), got[0].UUID)
	}
}

// Whatever a file holds, it is refused or is devices that can be saved and read again.
func FuzzRecord(f *testing.F) {
	f.Add(`{"devices": [{"uuid": "a", "vendor": "nvidia", "pci": "0000:01:00.0", "last_seen": "2026-05-04T03:02:01Z"}]}`)
	f.Add(`{"devices": null}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, raw string) {
		var first, second record
		if json.Unmarshal([]byte(raw), &first) != nil {
			return
		}
		again, err := json.Marshal(first)
		if err == nil {
			err = json.Unmarshal(again, &second)
		}
		if err != nil || len(second.Devices) != len(first.Devices) {
			t.Errorf("%q: %v, read again %s", raw, err, again)
		}
	})
}
