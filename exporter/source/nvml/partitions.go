//go:build cgo

package nvml

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// partitions are the MIG instances of one device. They are listed at each read: what an instance
// says must not be told of another that has taken its place.
type partitions struct {
	now   []*instance
	known map[string]*instance // by UUID, those of the last listing
	whole map[int]*group       // by GPU instance
}

// instance is a compute instance, which is what programs see as a device.
type instance struct {
	dev        device
	uuid       string
	gpu, work  int // ids of the GPU instance and of the compute instance in it
	labels     *metric.Labels
	attributes nvml.DeviceAttributes
	why        *metric.Reason // there are no attributes
	profile    string
	group      *group
}

// group is a GPU instance, to which memory and the profiler's counters belong. When it has several
// compute instances, these are told once of the GPU instance and not of each that shares them.
type group struct {
	key      string
	labels   *metric.Labels // nil: it has one compute instance, whose labels are its
	profiler profiler
	members  int
}

// mostInstances is far above what any device can be cut into.
const mostInstances = 64

// list finds the instances there are.
func (x *partitions) list(p *pass) {
	x.now = x.now[:0]
	if p.h.mig != 1 || p.h.answers.absent[askInstance] {
		x.drop(nil)
		return
	}
	n, ret := p.dev.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		n = 0
	}
	found := make(map[string]*instance, len(x.known))
	for i := range min(n, mostInstances) {
		dev, ret := p.dev.Instance(i)
		switch ret {
		case nvml.SUCCESS:
		case nvml.ERROR_NOT_FOUND, nvml.ERROR_INVALID_ARGUMENT: // the numbers have holes
			continue
		default:
			if why, whole := reason(ret); whole {
				p.down = why
				return
			}
			continue
		}
		uuid, ret := dev.GetUUID()
		if ret != nvml.SUCCESS || found[uuid] != nil {
			continue // it is being destroyed
		}
		one := x.known[uuid]
		if one == nil || one.dev.Raw() != dev.Raw() {
			one = describe(p, dev, uuid)
		}
		found[uuid] = one
		x.now = append(x.now, one)
	}
	x.drop(found)
}

// drop forgets the instances that are gone and joins those that are there to their GPU instances.
func (x *partitions) drop(found map[string]*instance) {
	x.known = found
	for _, g := range x.whole {
		g.members = 0
	}
	next := map[int]*group{}
	for _, one := range x.now {
		g := next[one.gpu]
		if g == nil {
			g = x.whole[one.gpu]
			if key := fmt.Sprintf("%d/%s", one.gpu, instanceProfile(one.profile)); g == nil || g.key != key {
				g = &group{key: key}
			}
			next[one.gpu] = g
		}
		g.members++
		one.group = g
	}
	for id, g := range x.whole {
		if next[id] != g {
			g.profiler.free()
		}
	}
	for _, one := range x.now {
		if g := one.group; g.members > 1 && g.labels == nil {
			g.labels = telemetry.PartitionAttributes{PartitionID: strconv.Itoa(one.gpu), PartitionProfile: instanceProfile(one.profile)}.Labels()
		} else if g.members == 1 {
			g.labels = nil
		}
	}
	x.whole = next
}

// describe asks what does not change of an instance.
func describe(p *pass, dev device, uuid string) *instance {
	one := &instance{dev: dev, uuid: uuid}
	one.gpu, _ = dev.GetGpuInstanceId()
	one.work, _ = dev.GetComputeInstanceId()
	if _, after, ok := strings.Cut(word(dev.GetName()), " MIG "); ok {
		one.profile = after
	}
	one.attributes, one.why = nvml.DeviceAttributes{}, metric.Unsupported
	if !p.h.answers.absent[askAttributes] {
		a, ret := dev.GetAttributes()
		one.attributes = a
		one.why, _ = reason(ret)
	}
	one.labels = telemetry.PartitionAttributes{
		PartitionUUID: uuid, PartitionID: fmt.Sprintf("%d/%d", one.gpu, one.work), PartitionProfile: one.profile,
	}.Labels()
	p.h.log.Info("partition found", "partition", uuid, "profile", one.profile)
	return one
}

// instanceProfile is the profile of the GPU instance that a compute instance of this profile is in: 3g.40gb
// of 1c.3g.40gb.
func instanceProfile(profile string) string {
	if first, rest, ok := strings.Cut(profile, "."); ok && strings.HasSuffix(first, "c") {
		return rest
	}
	return profile
}

// sample looks at each GPU instance.
func (x *partitions) sample(p *pass) {
	for _, one := range x.now {
		g := one.group
		g.profiler.look(p, p.h.history.activity(g.key), func(s nvml.GpmSample) *metric.Reason {
			if p.h.answers.absent[askGPMInstance] {
				return metric.Unsupported
			}
			why, _ := reason(p.dev.GpmMigSampleGet(one.gpu, s))
			return why
		})
	}
}

func (x *partitions) read(p *pass, out *telemetry.Device) {
	if p.down != nil || len(x.now) == 0 {
		return
	}
	parts := slices.Grow(out.Partitions[:0], len(x.now)+len(x.whole))
	told := map[*group]bool{}
	for _, one := range x.now {
		part := telemetry.Part[telemetry.Partition]{Labels: one.labels}
		to := &part.Read.Partitions
		put(&to.Multiprocessors, one.why, "{multiprocessor}", whole, one.attributes.MultiprocessorCount)
		put(&to.Slices, one.why, "{slice}", whole, one.attributes.ComputeInstanceSliceCount)
		if one.group.labels == nil {
			one.shared(p, &part.Read)
		} else if !told[one.group] {
			told[one.group] = true
			of := telemetry.Part[telemetry.Partition]{Labels: one.group.labels}
			one.shared(p, &of.Read)
			parts = append(parts, of)
		}
		parts = append(parts, part)
	}
	out.Partitions = parts
}

// shared reads what belongs to the GPU instance.
func (one *instance) shared(p *pass, out *telemetry.Partition) {
	if p.h.reader.chosen.groups["partitions"] {
		one.memory(p, &out.Partitions)
	}
	if p.h.reader.chosen.groups["profiling"] {
		one.group.profiler.read(p, &out.Profiling)
	}
}

func (one *instance) memory(p *pass, out *telemetry.Partitions) {
	if p.h.answers.absent[askMemoryV2] {
		m, ret := one.dev.GetMemoryInfo()
		why, _ := reason(ret)
		why = within(why, m.Total, m.Used, m.Free)
		put(&out.MemoryLimit, why, bytes, whole, m.Total)
		put(&out.MemoryFree, why, bytes, whole, m.Free)
		return
	}
	m, ret := one.dev.GetMemoryInfo_v2()
	why, _ := reason(ret)
	why = within(why, m.Total, m.Used, m.Free, m.Reserved)
	put(&out.MemoryLimit, why, bytes, whole, m.Total)
	put(&out.MemoryUsage, why, bytes, whole, m.Used)
	put(&out.MemoryFree, why, bytes, whole, m.Free)
	put(&out.MemoryReserved, why, bytes, whole, m.Reserved)
}

// free gives back what is held of the driver.
func (x *partitions) free() {
	for _, g := range x.whole {
		g.profiler.free()
	}
	*x = partitions{}
}
