package attribution

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// A picture is taken when somebody is given a device or gives it back, and at no other time.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var claims atomic.Pointer[[]Claim]
		var taken atomic.Int64
		var ended atomic.Bool
		a := New(Config{Claims: []func([]DeviceRef) []Claim{func([]DeviceRef) []Claim { return *claims.Load() }}})
		picture := func(context.Context) {
			id := &telemetry.Identity{UUID: "GPU-0"}
			a.Stage(&snapshot.Snapshot{Taken: time.Now(), Devices: []snapshot.Device{{Identity: id, Labels: id.Labels()}}})
			taken.Add(1)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { a.Run(ctx, picture); ended.Store(true) }()
		want := func(when string, n int64) {
			t.Helper()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if got := taken.Load(); got != n {
				t.Errorf("%s: %d pictures, want %d", when, got, n)
			}
		}
		claims.Store(&[]Claim{{Thing: Thing{Device: "GPU-0"}, Workload: pod("a"), Share: 1}})
		want("before the first scrape", 0)
		picture(ctx)
		want("after it", 1)
		claims.Store(&[]Claim{})
		want("at the end of the pod", 2)
		cancel()
		synctest.Wait()
		if !ended.Load() {
			t.Error("it runs on after its context")
		}
	})
}
