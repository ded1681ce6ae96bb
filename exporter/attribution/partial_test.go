package attribution

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// partial returns a snapshot of the rig's devices for a scrape that cannot wait.
func (r *rig) partial(after time.Duration, last *snapshot.Snapshot) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Taken: r.now.Add(after), Partial: true}
	for i, g := range r.gpus {
		d := g.read()
		if last != nil {
			d.Labels = last.Devices[i].Labels // the feed keeps a device's labels while they do not change
		}
		d.Owned = d.Labels
		s.Devices = append(s.Devices, d)
	}
	r.a.Partial(s, last)
	return s
}

func TestPartial_CarriesOwnersAndWorkloadsOverAndCountsNothing(t *testing.T) {
	r := newRig(t, 2, Config{Hold: time.Nanosecond})
	r.gpus[1].parts = []*rigPart{{uuid: "MIG-a", slices: 3}, {uuid: "MIG-b", slices: 4}}
	r.claim("a", 0, "", 1)
	r.claim("b", 1, "MIG-b", 1)
	r.picture(0)
	last := r.picture(10 * time.Second)
	s := r.partial(time.Second, last)
	if !slices.Equal(s.Workloads, last.Workloads) || !slices.Equal(s.Owners, last.Owners) || len(s.Details) != len(last.Details) || len(s.Usages) != len(last.Usages) {
		t.Errorf("%d workloads, %d owners, %d details and %d usages; want those of the last snapshot", len(s.Workloads), len(s.Owners), len(s.Details), len(s.Usages))
	}
	if got := s.Devices[0].Owned.Get("k8s_pod_name"); got != "a" {
		t.Errorf("the device's gauges carry pod %q, want a", got)
	}
	for i, want := range []string{"", "b"} {
		if got := s.Devices[1].Read.Partitions[i].Owned.Get("k8s_pod_name"); got != want {
			t.Errorf("the gauges of partition %d carry pod %q, want %q", i, got, want)
		}
	}
	r.picture(10 * time.Second)
	r.wants("allocated", allocatedOf, 20, `"a"`)
}

func TestPartial_WithoutARecentSnapshotHasNoOwners(t *testing.T) {
	for name, c := range map[string]struct {
		last  bool
		after time.Duration
	}{"before the first": {false, 0}, "after the longest interval": {true, longest + time.Second}} {
		r := newRig(t, 1, Config{Join: true})
		r.claim("a", 0, "", 1)
		last := r.picture(0)
		if !c.last {
			last = nil
		}
		s := r.partial(c.after, last)
		if len(s.Owners) != 0 || len(s.Workloads) != 0 || s.Devices[0].Owned.Get("gpu_uuid") != "GPU-0" || s.Devices[0].Owned.Get("gpu_model") != "" {
			t.Errorf("%s: %d owners, %d workloads, gauges with %s", name, len(s.Owners), len(s.Workloads), s.Devices[0].Owned.Text())
		}
	}
}

// Placing a process may hang: other calls of the attributor must not wait for it.
func TestAttributor_HungPlacingBlocksNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		a := New(Config{
			Claims: []func([]DeviceRef) []Claim{func([]DeviceRef) []Claim { return nil }},
			Place:  func(int64) (Workload, string, bool) { <-hang; return pod("a"), "test", true },
		})
		id := &telemetry.Identity{UUID: "GPU-0"}
		d := snapshot.Device{Identity: id, Labels: id.Labels()}
		d.Read.Processes = []telemetry.Part[telemetry.Process]{{Labels: telemetry.ProcessAttributes{ProcessPid: 7}.Labels()}}
		var staged, other sync.WaitGroup
		staged.Go(func() { a.Stage(&snapshot.Snapshot{Taken: time.Now(), Devices: []snapshot.Device{d}}) })
		synctest.Wait()
		returned := false
		other.Go(func() {
			a.Changed()
			a.Explain()
			a.Counts()
			a.Unplaced()
			a.Partial(&snapshot.Snapshot{Taken: time.Now()}, nil)
			returned = true
		})
		synctest.Wait()
		if !returned {
			t.Error("another call waits for a process that is being placed")
		}
		close(hang)
		staged.Wait()
		other.Wait()
	})
}
