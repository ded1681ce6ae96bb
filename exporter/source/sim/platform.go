package sim

import (
	"fmt"
	"strconv"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// about is what never changes of a board and is told in labels. All readings share it.
type about struct {
	platform, firmware, fabric []metric.Keyed

	fans []*metric.Labels
}

// describe makes up where a board sits and what runs in it. Only NVIDIA's driver is asked for that.
func describe(b *board, index int, seed uint64) about {
	if b.vendor != nvidia {
		return about{}
	}
	at := telemetry.PlatformInfoAttributes{Minor: strconv.Itoa(index), Module: "1"}
	runs := telemetry.PlatformFirmwareInfoAttributes{
		DriverBranch:   nvidiaBranch,
		InforomVersion: b.inforom.image, InforomOem: b.inforom.oem, InforomECC: b.inforom.ecc,
		GspVersion: nvidiaDriver, GspMode: "on",
		Brand: nvidia, Pdi: fmt.Sprintf("0x%016x", mix(seed, 'i')),
	}
	if b.consumer {
		runs.Brand = "geforce"
	}
	if b.nvlink.links != 0 {
		const baseboard = 8
		at.Module = strconv.Itoa(index%baseboard + 1)
		if b.age >= hopper {
			runs.NvlinkBandwidthMode = "full"
		}
		if b.age >= blackwell {
			at.ChassisHost, at.PlatformPeerType = "1", "switch"
			at.PlatformGuid = fmt.Sprintf("0x%016x", mix(seed, 'g'))
		}
	}
	var fans []*metric.Labels
	for i := range b.fans {
		fans = append(fans, telemetry.FanSpeedAttributes{Fan: int64(i)}.Labels())
	}
	return about{
		fans:     fans,
		platform: always(at.Labels()), firmware: always(runs.Labels()),
		fabric: always(telemetry.FabricInfoAttributes{FabricClique: "0"}.Labels()),
	}
}

// always is the one reading of a metric that is always 1.
func always(labels *metric.Labels) []metric.Keyed {
	k := metric.Keyed{Labels: labels}
	k.Value.Set(1)
	return []metric.Keyed{k}
}

func (d *device) platform(out *telemetry.Platform) {
	out.Info, out.FirmwareInfo = d.about.platform, d.about.firmware
}
