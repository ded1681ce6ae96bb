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
	info       []metric.Keyed // where its GPU instance lies; nil: the driver does not tell us
	told       bool           // all of the above; else it is asked again
	group      *group
}

// group is a GPU instance, to which memory and the profiler's counters belong. When it has several
// compute instances, these are told once of the GPU instance and not of each that shares them.
type group struct {
	key      string // of its seconds
	profile  string
	labels   *metric.Labels // nil: it has one compute instance, whose labels are its
	profiler profiler
	members  int
}

// mostInstances is far above what any device can be cut into.
const mostInstances = 64

// list finds the instances there are.
func (x *partitions) list(p *pass) {
	x.now = x.now[:0]
	if p.down != nil {
		return
	}
	if p.h.mig != 1 || p.h.answers.absent[askInstance] {
		x.join(nil)
		return
	}
	n, ret := p.dev.GetMaxMigDeviceCount()
	if why, whole := reason(ret); whole {
		p.down = why
		return
	} else if why != nil {
		n = 0
	}
	found := make(map[string]*instance, len(x.known))
	for i := range min(n, mostInstances) {
		one := x.at(p, i)
		if p.down != nil {
			x.now = x.now[:0]
			return
		}
		if one == nil || found[one.uuid] != nil {
			continue
		}
		found[one.uuid] = one
		x.now = append(x.now, one)
	}
	x.join(found)
}

// at is the instance of a number, nil where there is none: the numbers have holes, and an instance may
// be being made or destroyed.
func (x *partitions) at(p *pass, number int) *instance {
	dev, ret := p.dev.Instance(number)
	if why, whole := reason(ret); why != nil {
		if whole {
			p.down = why
		}
		return nil
	}
	uuid, ret := dev.GetUUID()
	if ret != nvml.SUCCESS || uuid == "" {
		return nil
	}
	one := x.known[uuid]
	if one == nil || !one.told || one.dev.Raw() != dev.Raw() {
		return describe(p, dev, uuid, one)
	}
	return one
}

// join takes over the instances found, joins them to their GPU instances and forgets those that are
// gone. A GPU instance is the same as long as one of its compute instances is.
func (x *partitions) join(found map[string]*instance) {
	same := map[int]bool{}
	for uuid, one := range found {
		before := x.known[uuid]
		same[one.gpu] = same[one.gpu] || before != nil && before.gpu == one.gpu
	}
	x.known = found
	next := map[int]*group{}
	for _, one := range x.now {
		g, profile := next[one.gpu], instanceProfile(one.profile)
		if g == nil {
			g = x.whole[one.gpu]
			if g == nil || !same[one.gpu] || g.profile != profile {
				g = &group{key: fmt.Sprintf("%d/%s/%s", one.gpu, profile, one.uuid), profile: profile}
			}
			g.members = 0
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
	for id, g := range next {
		if g.members == 1 {
			g.labels = nil
		} else if g.labels == nil {
			g.labels = telemetry.PartitionAttributes{PartitionID: strconv.Itoa(id), PartitionProfile: g.profile}.Labels()
		}
	}
	x.whole = next
}

// describe asks what does not change of an instance, nil where it can not be told which it is.
func describe(p *pass, dev device, uuid string, before *instance) *instance {
	one := &instance{dev: dev, uuid: uuid, why: metric.Unsupported, told: true}
	var ret nvml.Return
	if one.gpu, ret = dev.GetGpuInstanceId(); ret != nvml.SUCCESS {
		return nil
	}
	if one.work, ret = dev.GetComputeInstanceId(); ret != nvml.SUCCESS {
		return nil
	}
	name, ret := dev.GetName()
	if _, after, ok := strings.Cut(word(name, ret), " MIG "); ok {
		one.profile = after
	}
	why, _ := reason(ret)
	one.told = why == nil || why == metric.Unsupported
	if !p.h.answers.absent[askAttributes] {
		one.attributes, ret = dev.GetAttributes()
		one.why, _ = reason(ret)
		one.told = one.told && (one.why == nil || one.why == metric.Unsupported)
	}
	why, _ = one.place(p)
	one.told = one.told && (why == nil || why == metric.Unsupported || why == metric.Denied)
	one.labels = telemetry.PartitionAttributes{
		PartitionUUID: uuid, PartitionID: fmt.Sprintf("%d/%d", one.gpu, one.work), PartitionProfile: one.profile,
	}.Labels()
	if before == nil || before.profile != one.profile {
		p.h.log.Info("partition found", "partition", uuid, "profile", one.profile)
	}
	return one
}

// place asks where the GPU instance lies, which only root may know.
func (one *instance) place(p *pass) (*metric.Reason, bool) {
	if !p.h.reader.chosen.groups["partitions"] || p.h.answers.absent[askPlacement] {
		return metric.Unsupported, false
	}
	gi, ret := p.dev.GetGpuInstanceById(one.gpu)
	why, whole := reason(ret)
	if why == nil {
		k := metric.Keyed{Labels: telemetry.PartitionsInfoAttributes{
			PartitionPlacement: fmt.Sprintf("%d:%d", gi.Placement.Start, gi.Placement.Size), PartitionProfileID: int64(gi.ProfileId),
		}.Labels()}
		k.Value.Set(1)
		one.info = []metric.Keyed{k}
	}
	return why, whole
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
	for id, g := range x.whole {
		switch {
		case p.down != nil:
			g.profiler.lose(metric.NoData)
		case p.h.answers.absent[askGPMInstance]:
			g.profiler.lose(metric.Unsupported)
		default:
			g.profiler.look(p, p.h.history.activity(g.key), func(s nvml.GpmSample) *metric.Reason {
				why, _ := reason(p.dev.GpmMigSampleGet(id, s))
				return why
			})
		}
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
		out.Partitions.Info = one.info
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
		out.MemoryUsage.Fail(metric.Unsupported) // it includes what is reserved, as of the device
		out.MemoryReserved.Fail(metric.Unsupported)
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

// pause gives back what is held of the driver and keeps the averages.
func (x *partitions) pause() {
	for _, g := range x.whole {
		g.profiler.pause()
	}
}

// free gives back what is held of the driver.
func (x *partitions) free() {
	for _, g := range x.whole {
		g.profiler.free()
	}
	*x = partitions{}
}
