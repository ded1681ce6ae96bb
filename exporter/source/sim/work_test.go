package sim

import (
	"context"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// A node that is read at once at the age AtWork works on every board, has used energy, and each board, or each
// partition of one, has a tenant.
func TestAge_AtWork(t *testing.T) {
	for seed := range uint64(50) {
		at, tenants := time.Unix(1_800_000_000, 0), new(Tenants)
		src, err := New(Config{Node: "h100x9,h100migx1,b200x1,rtx4090x1,mi300xx1,gaudi3x1", Now: func() time.Time { return at }, Seed: seed, Age: AtWork, Tenants: tenants})
		if err != nil {
			t.Fatal(err)
		}
		r, err := src.Open(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		devices, err := r.Devices(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		held := map[string]int{}
		for _, d := range devices {
			out := new(telemetry.Device)
			if why := d.Read(context.Background(), out); why != nil {
				t.Fatal(why.Text)
			}
			id := d.Identity()
			if used, _ := out.Memory.Usage.Get(); used < 1<<30 {
				t.Errorf("seed %d: %s uses %v bytes", seed, id.Model, used)
			}
			if busy, ok := out.Utilization.Utilization.Get(); ok && busy <= 0 {
				t.Errorf("seed %d: %s is idle", seed, id.Model)
			}
			if energy, ok := out.Power.Energy.Get(); ok && energy < 10*AtWork.Seconds() {
				t.Errorf("seed %d: %s has used %v J", seed, id.Model, energy)
			}
			held[id.UUID] = max(1, len(out.Partitions))
		}
		for _, one := range tenants.List() {
			held[one.Device]--
		}
		for uuid, n := range held {
			if n != 0 {
				t.Errorf("seed %d: %d parts of %s have no tenant", seed, n, uuid)
			}
		}
	}
}
