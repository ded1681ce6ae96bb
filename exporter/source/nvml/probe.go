//go:build cgo

package nvml

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Probe initialises NVML in this process and prints a report on one line: how long that took and which
// devices answer. Then it keeps the session open until hold ends, so that the devices stay initialised for
// another process. An error of NVML is part of the report.
func Probe(library string, hold io.Reader, out io.Writer) error {
	lib, err := find(library)
	found := report{}
	if err != nil {
		found.Error = err.Error()
	} else {
		found = examine(lib)
	}
	if err := json.NewEncoder(out).Encode(found); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if _, err := io.Copy(io.Discard, hold); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	if found.Error == "" {
		_ = lib.Shutdown() // the process ends, whatever it returns
	}
	return nil
}

// examine initialises the library and asks each device whether it answers.
func examine(lib library) (out report) {
	began := time.Now()
	if ret := lib.Init(); ret != nvml.SUCCESS {
		return report{Error: initFault(ret).Error()}
	}
	out.InitSeconds = time.Since(began).Seconds()
	n, ret := lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		_ = lib.Shutdown()
		return report{Error: "count devices: " + ret.Error()}
	}
	for i := range n {
		if uuid, ok := responds(lib, i); ok {
			out.UUIDs = append(out.UUIDs, uuid)
		}
	}
	return out
}

// responds returns the UUID of a device that answers. The library may know the UUID of one that is lost, so
// the device itself is asked too.
func responds(lib library, index int) (uuid string, ok bool) {
	dev, ret := lib.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return "", false
	}
	if uuid, ret = dev.GetUUID(); ret != nvml.SUCCESS || uuid == "" {
		return "", false
	}
	for _, call := range []struct {
		symbol string
		ask    func() nvml.Return
	}{
		{symbols[askMemory], func() nvml.Return { _, ret := dev.GetMemoryInfo(); return ret }},
		{symbols[askPower], func() nvml.Return { _, ret := dev.GetPowerUsage(); return ret }},
	} {
		if !has(lib, call.symbol) {
			continue
		}
		if _, whole := reason(call.ask()); whole {
			return "", false
		}
	}
	return uuid, true
}
