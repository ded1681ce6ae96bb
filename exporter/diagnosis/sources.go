package diagnosis

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// What to do about NVIDIA's driver. The same advice serves several findings.
const (
	loadDriver = "Load the driver: \"modprobe nvidia\"; if that fails, install it, or rebuild its module for this kernel (dkms), " +
		"and look at the kernel log (dmesg). With Kubernetes, see that the GPU operator's driver pod is ready."
	useRuntime = "In a container, use the NVIDIA runtime: in Kubernetes runtimeClassName: nvidia, with Docker --gpus all, " +
		"and the variables NVIDIA_VISIBLE_DEVICES=all and NVIDIA_DRIVER_CAPABILITIES=utility. "
	installLibrary = "On the host, install the driver's libnvidia-ml.so.1 of the same version, or name its file with --nvml.library."
	makeNodes      = "On the host, enable nvidia-persistenced, or run nvidia-smi once after each boot: either creates the device nodes. " + useRuntime +
		"Without that runtime, mount the device nodes into the container."
	allowNodes = "Run as a user who may open the device nodes: root, or the group that owns them. " +
		"In a container, the device cgroup must allow them: request them through the NVIDIA runtime or --device. " +
		"\"systemctl daemon-reload\" on the host can revoke them from a running container: restart it. In a systemd unit, add DeviceAllow=."
	sameVersion = "After a driver upgrade, reboot or reload the kernel modules, so that kernel and library have one version. " +
		"In a container, restart it, and mount the host's library rather than one of the image."
)

// nvml examines a source of NVIDIA's that does not serve.
func (x *examination) nvml(h *snapshot.SourceHealth) {
	m := x.machine
	n := &m.NVIDIA
	have := len(m.on("nvidia", "nvidia"))
	f := Finding{Severity: Error}
	switch {
	case h.State == telemetry.SourceStateUnbuilt:
		if have == 0 {
			return
		}
		f.ID, f.Message = SourceUnbuilt, "this build cannot read NVIDIA devices"
		f.Advice = "Use a build with cgo: a released package or image, or CGO_ENABLED=1 go build."
	case m.Silent:
		f.ID, f.Message = DriverSilent, "the NVIDIA driver does not respond: reading /proc/driver/nvidia takes longer than "+patience.String()
		f.Advice = "Look for NVRM and Xid lines in the kernel log (dmesg), then reset the GPU or reboot."
	case errors.Is(h.Cause, source.ErrStale), n.Kernel != "" && n.Library != "" && n.Kernel != n.Library:
		f.ID, f.Message, f.Advice = LibraryMismatch, "the NVIDIA kernel driver and libnvidia-ml have different versions"+versions(n), sameVersion
	case errors.Is(h.Cause, source.ErrAbsent) && have == 0 && len(n.GPUs) == 0:
		if n.Loaded {
			x.add(Finding{
				ID: DriverDeviceless, Severity: Warning, Message: "the NVIDIA kernel driver is loaded, and no NVIDIA device is on the PCI bus",
				Advice: "If this machine should have a GPU, it fell off the bus: look at the kernel log (dmesg), and power-cycle the machine. If not, unload the driver.",
			})
		}
		return
	case errors.Is(h.Cause, source.ErrAbsent) && !n.Loaded:
		f.ID, f.Advice = DriverNotLoaded, loadDriver
		f.Message = "the NVIDIA kernel driver is not loaded; " + plural(have, "NVIDIA device is", "NVIDIA devices are") + " on the PCI bus"
	case errors.Is(h.Cause, source.ErrNoLibrary):
		f.ID, f.Message, f.Advice = LibraryMissing, "the library libnvidia-ml.so.1 is not found, though the NVIDIA kernel driver"+spaced(n.Kernel)+" is loaded", useRuntime+installLibrary
		if n.NoFile != "" {
			f.Message += "; --nvml.library names " + n.NoFile + ", which does not exist"
		}
	case len(n.nodes(true)) > 0:
		f = missingNodes(n.nodes(true))
	case len(n.nodes(false)) > 0, errors.Is(h.Cause, source.ErrDenied):
		f.ID, f.Advice = AccessDenied, allowNodes
		f.Message = "access to the NVIDIA devices is denied: " + h.Err
		if denied := n.nodes(false); len(denied) > 0 {
			f.Message = "access to " + paths(denied) + " is denied: " + reason(denied[0].Err)
		}
	case errors.Is(h.Cause, source.ErrNoDevice):
		return // each device on the bus is missing, and said so
	default:
		x.failed(h)
		return
	}
	x.add(f)
	x.explainNVIDIA(h)
}

// missingNodes is the finding about device nodes that do not exist.
func missingNodes(nodes []Node) Finding {
	verb := " does"
	if len(nodes) > 1 {
		verb = " do"
	}
	return Finding{ID: NodesMissing, Severity: Error, Message: paths(nodes) + verb + " not exist", Advice: makeNodes}
}

// mostPaths are listed in a message.
const mostPaths = 4

func paths(nodes []Node) string {
	var all []string
	for _, n := range nodes[:min(len(nodes), mostPaths)] {
		all = append(all, n.Path)
	}
	text := strings.Join(all, ", ")
	if more := len(nodes) - mostPaths; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// reason is an error without the path it names.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// versions names those that are known.
func versions(n *NVIDIA) string {
	var all []string
	if n.Kernel != "" {
		all = append(all, "kernel driver "+n.Kernel)
	}
	if n.Library != "" {
		all = append(all, "library "+n.Library)
	}
	if len(all) == 0 {
		return ""
	}
	return ": " + strings.Join(all, ", ")
}

// spaced puts a space before a word.
func spaced(v string) string {
	if v == "" {
		return ""
	}
	return " " + v
}
