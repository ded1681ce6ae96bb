//go:build cgo

package nvml_test

import (
	"math"
	"os"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
	"github.com/gpumeter/gpumeter/test/fakenvml"
)

func links(d *telemetry.Device, sort telemetry.LinkType) (out []telemetry.Links) {
	for _, l := range d.Links {
		if l.Labels.Get("gpu_link_type") == sort.String() {
			out = append(out, l.Read.Links)
		}
	}
	return out
}

// lacks checks that a reading is not there, and why.
func (d driver) lacks(what string, got metric.Value, want *metric.Reason) {
	d.Helper()
	if got.Why() != want {
		n, _ := got.Get()
		d.Errorf("%s = %v (%v), want none: %v", what, n, got.Why(), want)
	}
}

// What NVLinks count has other numbers on Blackwell than on Hopper, and another unit.
func TestDriverNVLinks(t *testing.T) {
	alone(t, "", func(d driver) {
		d.tell("gpus 2", "board h100 0", "board b200 1", "set * nvlink_replay 5", "set * nvlink_recovery 6", "set * nvlink_crc 7",
			"set * nvlink_malformed 8", "set * nvlink_overruns 9", "set * nvlink_receive 10", "set * nvlink_remote_errors 11", "set * nvlink_general 12",
			"set * nvlink_integrity 13", "set * nvlink_discards 14", "set * nvlink_unrecovered 15", "set * nvlink_recoveries 16", "set * nvlink_effective 17",
			"set * nvlink_symbol 18", "set * nvlink_fec 65536", "set * nvlink_symbol_ber 0x20C", "link * 3 down")
		r := d.open()
		defer d.close(r)
		devices := d.list(r)
		const sent, received = telemetry.NetworkIoDirectionTransmit, telemetry.NetworkIoDirectionReceive
		var before [2][]telemetry.Links
		start := time.Now()
		for i, x := range devices {
			before[i] = links(d.read(x), telemetry.LinkTypeNvlink)
		}
		time.Sleep(time.Second)
		for i, board := range []struct {
			generation, speed float64
			errors            map[telemetry.LinkErrorType]float64
			symbolBER         float64 // 0: none
		}{
			{4, 26562e6, map[telemetry.LinkErrorType]float64{
				telemetry.LinkErrorTypeReplay: 5, telemetry.LinkErrorTypeRecovery: 6, telemetry.LinkErrorTypeCrc: 7,
			}, 0},
			{5, 53125e6, map[telemetry.LinkErrorType]float64{
				telemetry.LinkErrorTypeMalformed: 8, telemetry.LinkErrorTypeOverrun: 9, telemetry.LinkErrorTypeReceive: 10, telemetry.LinkErrorTypeRemote: 11,
				telemetry.LinkErrorTypeHeader: 12, telemetry.LinkErrorTypeIntegrity: 13, telemetry.LinkErrorTypeDiscarded: 14,
				telemetry.LinkErrorTypeRecoveryFailed: 15, telemetry.LinkErrorTypeRecovery: 16, telemetry.LinkErrorTypeEffective: 17, telemetry.LinkErrorTypeSymbol: 18,
			}, 2e-12},
		} {
			all := links(d.read(devices[i]), telemetry.LinkTypeNvlink)
			took := time.Since(start).Seconds()
			if len(all) != 18 {
				d.Fatalf("%d links, want 18", len(all))
			}
			for k, x := range all {
				up := 1.
				if k == 3 {
					up = 0
				}
				d.want("up", x.Up, up)
				d.want("generation", x.Generation, board.generation)
				d.want("speed", x.Speed, board.speed)
				d.want("asleep", x.LowPower, 0)
				for kind := range x.Errors {
					n, ok := board.errors[telemetry.LinkErrorType(kind)]
					v := x.Errors[kind]
					switch {
					case ok:
						d.want(telemetry.LinkErrorType(kind).String(), v, n)
					case v.Why() != metric.Unsupported && v.Why() != metric.Unread: // which no NVLink has
						d.lacks(telemetry.LinkErrorType(kind).String(), v, metric.Unsupported)
					}
				}
				if ber := x.BitError[telemetry.LinkBitErrorTypeSymbol]; board.symbolBER == 0 {
					d.lacks("wrong symbols", ber, metric.Unsupported)
					d.lacks("blocks mended", x.FecBlocks[0], metric.Unsupported)
				} else {
					if n, ok := ber.Get(); !ok || math.Abs(n/board.symbolBER-1) > 1e-9 {
						d.Errorf("wrong symbols %v (%v), want %v", n, ber.Why(), board.symbolBER)
					}
					d.want("blocks with 3 symbols mended", x.FecBlocks[telemetry.LinkFecErrorsSymbols3], 65536/8)
				}
				d.lacks("raw wrong bits, since R595", x.BitError[telemetry.LinkBitErrorTypeRaw], metric.Unsupported)
				for direction, rate := range map[telemetry.NetworkIoDirection]float64{sent: 1000 * 1024 * up, received: 2000 * 1024 * up} {
					old, _ := before[i][k].Io[direction].Get()
					now, ok := x.Io[direction].Get()
					if grown := now - old; !ok || grown < rate*(took-0.5) || grown > rate*took {
						d.Errorf("GPU %d, link %d: %v bytes in %v s, want %v a second", i, k, grown, took, rate)
					}
				}
				if i, ok := x.Info, up == 1; ok && len(i) != 1 || !ok && i != nil {
					d.Errorf("the other end of link %d: %v", k, i)
				}
			}
		}
		remote := links(d.read(devices[0]), telemetry.LinkTypeNvlink)[1].Info[0].Labels.Text()
		if remote != `gpu_link_remote_type="switch",gpu_link_remote_address="0000:c1:00.0"` {
			d.Errorf("the other end of link 1 is %s", remote)
		}
		asked := fakenvml.Stats(d, os.Getenv("FAKENVML_STATS"))["nvmlDeviceGetNvLinkRemoteDeviceType 0"]
		if asked != 17 {
			d.Errorf("the other ends of 17 links were asked %d times in three reads", asked)
		}
	})
}

// A superchip is tied to its host by links of its own.
func TestDriverC2C(t *testing.T) {
	alone(t, "", func(d driver) {
		d.tell("gpus 2", "board gb200 0", "board h100 1", "set 0 c2c_errors 1", "set 0 c2c_replay 2", "set 0 c2c_replay_b2b 3")
		r := d.open()
		defer d.close(r)
		devices := d.list(r)
		out := d.read(devices[0])
		all := links(out, telemetry.LinkTypeC2c)
		if len(all) != 10 {
			d.Fatalf("%d links, want 10", len(all))
		}
		for _, x := range all {
			d.want("up", x.Up, 1)
			d.want("speed", x.Speed, 44712e6)
			d.want("check sums", x.Errors[telemetry.LinkErrorTypeCrc], 1)
			d.want("replays", x.Errors[telemetry.LinkErrorTypeReplay], 2)
			d.want("replays of replays", x.Errors[telemetry.LinkErrorTypeReplayBackToBack], 3)
		}
		d.want("on", out.Mode.C2cEnabled, 1)
		d.want("power of the module", out.Power.Instant[telemetry.PowerDomainModule], 1300)
		d.want("power of the memory", out.Power.Instant[telemetry.PowerDomainMemory], 120)
		if info := out.Platform.Info[0].Labels; info.Get("gpu_numa_node") != "2" {
			d.Errorf("placed %s", info.Text())
		}
		out = d.read(devices[1])
		if n := len(links(out, telemetry.LinkTypeC2c)); n != 0 {
			d.Errorf("%d links chip to chip of a board without", n)
		}
		d.want("on, of a board without", out.Mode.C2cEnabled, 0)
		d.lacks("power of its module", out.Power.Instant[telemetry.PowerDomainModule], metric.Unsupported)
	})
}

// The link to the host: what it can do at best, what it does now, and what it carried.
func TestDriverPCIe(t *testing.T) {
	alone(t, "", func(d driver) {
		told := []string{"gpus 3", "board h100 0", "board l40s 1", "board v100 2", "set 0 pcie_gen 1", "set 0 pcie_replay 4", "set 0 pcie_bad_tlp 5", "field 2 197 uint 12345"}
		d.tell(told...)
		r := d.open()
		defer d.close(r)
		devices := d.list(r)
		for i, speeds := range [][2]float64{{4e9, 63015384615}, {31507692308, 31507692308}, {15753846154, 15753846154}} {
			x := links(d.read(devices[i]), telemetry.LinkTypePCIE)[0]
			d.want("speed", x.Speed, speeds[0])
			d.want("speed at best", x.SpeedLimit, speeds[1])
			d.want("lanes", x.Width, 16)
		}
		x := links(d.read(devices[0]), telemetry.LinkTypePCIE)[0]
		d.want("generation of an idle link", x.Generation, 1)
		d.want("generation at best", x.GenerationLimit, 5)
		d.want("replays", x.Errors[telemetry.LinkErrorTypeReplay], 4)
		d.want("bad packets", x.Errors[telemetry.LinkErrorTypeBadTlp], 5)
		before, start := x.Io[telemetry.NetworkIoDirectionReceive], time.Now()
		time.Sleep(500 * time.Millisecond)
		after := links(d.read(devices[0]), telemetry.LinkTypePCIE)[0].Io[telemetry.NetworkIoDirectionReceive]
		a, _ := before.Get()
		b, ok := after.Get()
		if took := time.Since(start).Seconds(); !ok || b-a < 2e6*(took-0.3) || b-a > 2e6*(took+0.3) {
			d.Errorf("%v bytes in %v s, want 2e6 a second", b-a, took)
		}
		d.lacks("a count of 32 bits", links(d.read(devices[2]), telemetry.LinkTypePCIE)[0].Io[telemetry.NetworkIoDirectionTransmit], metric.Unsupported)
		d.lacks("temperature of a memory without a sensor", d.read(devices[1]).Thermal.Temperature[telemetry.TemperatureSensorMemory], metric.Unsupported)
	})
}
