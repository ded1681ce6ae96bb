package main

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/attribution/slurm"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// The attributor calls for claims once a second, while later stages change the snapshot it saw. The race
// detector finds what they share.
func TestJobClaims_ShareNothingWithASnapshotInItsStages(t *testing.T) {
	a := attribution.New(attribution.Config{Claims: []func([]attribution.DeviceRef) []attribution.Claim{
		func(devices []attribution.DeviceRef) []attribution.Claim {
			claims, _ := jobClaims([]slurm.Entry{{GPU: "0", Job: slurm.Job{ID: "7"}}}, devices, numbering{})
			return claims
		},
	}})
	shown := showProcesses(1)
	id := &telemetry.Identity{UUID: "GPU-0", Vendor: "nvidia", Minor: "0"}
	var calls atomic.Int64
	var calling sync.WaitGroup
	defer calling.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	calling.Go(func() {
		for ctx.Err() == nil {
			a.Changed()
			calls.Add(1)
		}
	})
	for i := range 20 {
		d := snapshot.Device{Identity: id, Labels: id.Labels(), Owned: id.Labels()}
		d.Read.Partitions = make([]telemetry.Part[telemetry.Partition], 1)
		for pid := range int64(3) {
			d.Read.Processes = append(d.Read.Processes, telemetry.Part[telemetry.Process]{Labels: telemetry.ProcessAttributes{ProcessPid: pid + 1}.Labels()})
		}
		s := &snapshot.Snapshot{Taken: time.Unix(int64(i), 0), Devices: []snapshot.Device{d}}
		a.Stage(s)
		shown(s)
		if n := len(s.Devices[0].Read.Processes); n != 1 {
			t.Fatalf("%d processes are shown, want 1", n)
		}
		for before := calls.Load(); calls.Load() < before+2; { // a call that started after the change has ended
			runtime.Gosched()
		}
	}
}
