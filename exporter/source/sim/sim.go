// Package sim is a simulated node: boards with honest names whose numbers obey physics.
package sim

import (
	"context"
	"slices"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Config says which node is simulated.
type Config struct {
	Node    string           // models and their counts: h100x8, or h100x2,h100mig, or the name of a node: mixed; and faults
	Now     func() time.Time // called from many goroutines; nil: time.Now
	Tenants *Tenants         // told whose work is on the boards; nil: nobody asks
	Faults  func() Faults    // asked with each reading, by one at a time, for those beside the node's own; nil: there are none
	Seed    uint64           // the same seed makes the same boards do the same
	Age     time.Duration    // how long the node's driver has been loaded when New is called
	Hold    time.Duration    // an XID code is 0 for so long from the first reading that has it
}

// AtWork is an age at which every board of every node works on its first job: the jobs have loaded,
// and the shortest has not ended.
const AtWork = 700 * time.Second

// New returns the source. The node's driver was loaded Age ago, and its counters go on when the
// source is closed and opened again.
func New(c Config) (source.Source, error) {
	slots, asked, err := parse(c.Node)
	if err != nil {
		return source.Source{}, err
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	loaded, w, struck := c.Now().Add(-c.Age), newWishes(asked, c.Faults), strikes(slots)
	for i := range slots {
		slots[i].seed = c.Seed
	}
	return source.Source{
		Name: "sim",
		Doc:  "a simulated node: " + c.Node,
		Open: func(context.Context) (source.Reader, error) {
			r := &reader{wishes: w, engines: newReplicas(c, loaded, slots, struck)}
			for i, s := range slots {
				r.devices = append(r.devices, newDevice(c, loaded, s, i, w, struck[i]))
			}
			return r, nil
		},
	}, nil
}

type reader struct {
	devices []source.Device
	engines []*replica
	wishes  *wishes
}

// Devices lists the boards, which never come or go.
func (r *reader) Devices(context.Context) ([]source.Device, error) {
	return slices.Clone(r.devices), nil
}

// Close has nothing to free.
func (r *reader) Close() error { return nil }

// device is one board.
type device struct {
	slot       slot
	told       *Tenants // nil: nobody asks
	board      *board
	identity   telemetry.Identity
	about      about
	links      []link
	partitions []partition
	processes  []process // of each duty
	now        func() time.Time
	loaded     time.Time // the driver
	wishes     *wishes
	physics    physics
	faults     faultLog
	hold       time.Duration
	shown      [len(faultSorts)]time.Time // first reading that had the code of each; zero: there was none
	live       [len(faultSorts)]bool      // its hold is over
}

// work is what a board has to do, which follows from the node, the seed and its index.
func work(c Config, s slot, index int) []duty {
	return duties(s, mix(c.Seed, everyone), mix(c.Seed, everyone, uint64(s.entry), uint64(s.job)), mix(c.Seed, uint64(index)))
}

// newDevice puts a board into the node.
func newDevice(c Config, loaded time.Time, s slot, index int, w *wishes, struck Faults) *device {
	seed, work := mix(c.Seed, uint64(index)), work(c, s, index)
	d := &device{
		slot: s, told: c.Tenants, board: s.board, identity: identify(s.board, index, seed), about: describe(s.board, index, seed),
		links: connect(s.board), partitions: cut(s.board, seed), processes: make([]process, len(work)),
		now: c.Now, loaded: loaded, wishes: w, hold: c.Hold,
		physics: newPhysics(s.board, work),
		faults:  newFaultLog(s.board, work[0].plan, mix(seed, 'f')),
	}
	d.physics.asked.by, d.faults.asked.by = struck, struck
	return d
}

// Identity never changes.
func (d *device) Identity() *telemetry.Identity { return &d.identity }

// Read moves the board to this instant and tells what a board of its model would tell.
func (d *device) Read(_ context.Context, out *telemetry.Device) *metric.Reason {
	since := d.now().Sub(d.loaded)
	if d.physics.asked.by != 0 {
		asked := d.wishes.look(int64(since / time.Second))
		d.physics.asked.asks, d.faults.asked.asks = asked, asked
	}
	d.physics.moveTo(since)
	d.faults.moveTo(d.physics.cycle)
	d.power(&out.Power)
	d.thermal(&out.Thermal)
	d.clock(&out.Clock)
	d.throttle(&out.Throttle)
	d.utilization(&out.Utilization)
	d.memory(&out.Memory)
	d.ecc(&out.ECC)
	d.repair(&out.Repair)
	d.mode(&out.Mode)
	d.fan(&out.Fan)
	d.encoder(&out.Encoder)
	d.fabric(&out.Fabric)
	d.platform(&out.Platform)
	profiling(&out.Profiling, d.board.age >= hopper, d.physics.activeAll)
	d.xid(&out.XID)
	out.Partitions, out.Links, out.Processes = d.readPartitions(), d.readLinks(), d.readProcesses()
	if d.told != nil {
		d.told.set(d.identity.UUID, d.tenants())
	}
	return nil
}
