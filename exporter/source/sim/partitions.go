package sim

import (
	"fmt"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// profile is a size into which MIG cuts a board.
type profile struct {
	name            string
	id              int64 // the driver's
	size            int64 // memory slices, of the board's eight
	instance        int64 // the first number its GPU instances have
	slices          int64 // of the chip's seven
	multiprocessors int64
	memory          int64 // bytes
}

// sizesOfH100 are some of an H100, as nvidia-smi mig -lgip lists them.
var sizesOfH100 = map[string]profile{
	"1g.10gb": {"1g.10gb", 19, 1, 7, 1, 16, 9984 * mebi},
	"2g.20gb": {"2g.20gb", 14, 2, 3, 2, 32, 20096 * mebi},
	"3g.40gb": {"3g.40gb", 9, 4, 1, 3, 60, 40448 * mebi},
}

// reservedOfPartition is the memory the driver keeps of each partition, in bytes.
const reservedOfPartition = 14 * mebi

// splitID ends the id of a board that is split.
const splitID = "mig"

// split is a board cut by MIG.
func (b board) split(sizes map[string]profile, names ...string) board {
	b.id += splitID
	used := map[string]int64{}
	for _, name := range names {
		p := sizes[name]
		p.instance += used[name]
		used[name]++
		b.parts = append(b.parts, p)
	}
	return b
}

// partition is one of a board and what never changes of it. It has the duty of the same number.
type partition struct {
	profile
	uuid   string
	labels *metric.Labels
	info   []metric.Keyed
}

// cut finds the partitions of a board. Their names follow from the board's and their place on it.
func cut(b *board, seed uint64) []partition {
	const half = 4 // memory slices; a partition of so many may lie in either half only
	var all []partition
	next := int64(0)
	for _, p := range b.parts {
		x, y := mix(seed, 'm', uint64(p.instance)), mix(seed, 'n', uint64(p.instance))
		uuid := "MIG-" + grouped(x, y)
		start := next
		if p.size == half {
			start = half
		} else {
			next += p.size
		}
		info := metric.Keyed{Labels: telemetry.PartitionsInfoAttributes{
			PartitionPlacement: fmt.Sprintf("%d:%d", start, p.size), PartitionProfileID: p.id,
		}.Labels()}
		info.Value.Set(1)
		all = append(all, partition{profile: p, uuid: uuid, info: []metric.Keyed{info}, labels: telemetry.PartitionAttributes{
			PartitionUUID: uuid, PartitionID: fmt.Sprintf("%d/0", p.instance), PartitionProfile: p.name,
		}.Labels()})
	}
	return all
}

// duties are what the boards of a job, or the partitions of a board each alone, have to do.
func duties(s slot, nodeSeed, jobSeed, ownSeed uint64) []duty {
	if len(s.board.parts) == 0 {
		return []duty{{plan: newPlan(s, s.board.room(), nodeSeed, jobSeed, ownSeed), slices: 1, memory: s.board.room()}}
	}
	var all []duty
	for i, p := range s.board.parts {
		part := slot{board: s.board, job: i, mates: 1}
		if i == 0 {
			part.seat = s.seat // cooling is the board's, and the first plan says how it is
		}
		seed := mix(ownSeed, 'd', uint64(i))
		memory := p.memory - reservedOfPartition
		plan := newPlan(part, memory, nodeSeed, mix(seed, 'j'), seed)
		all = append(all, duty{plan: plan, slices: p.slices, memory: memory})
	}
	return all
}

// readPartitions tells of each partition, in a slice of its own. All of it works while MIG is on.
func (d *device) readPartitions() []telemetry.Part[telemetry.Partition] {
	if len(d.partitions) == 0 {
		return nil
	}
	parts := make([]telemetry.Part[telemetry.Partition], len(d.partitions))
	for i := range d.partitions {
		p, out := &d.partitions[i], &parts[i].Read.Partitions
		used := d.physics.duties[i].used(d.physics.tick)
		parts[i].Labels, out.Info = p.labels, p.info
		out.Multiprocessors.Set(float64(p.multiprocessors))
		out.Slices.Set(float64(p.slices))
		out.MemoryLimit.Set(float64(p.memory))
		out.MemoryUsage.Set(float64(used))
		out.MemoryFree.Set(float64(p.memory - reservedOfPartition - used))
		out.MemoryReserved.Set(reservedOfPartition)
		profiling(&parts[i].Read.Profiling, d.board.age >= hopper, func(u unit) (share, seconds float64) {
			return d.physics.active(i, u)
		})
	}
	return parts
}
