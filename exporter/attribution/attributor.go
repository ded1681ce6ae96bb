package attribution

import (
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Config says who is asked, and how long series live. Zero durations and limits take the defaults.
type Config struct {
	// Claims return the allocations of these devices. They are called under a lock, for every snapshot
	// and once a second: they answer from memory.
	Claims []func([]DeviceRef) []Claim
	// Place says whose work a process of the host does, and how that was found; false when nobody knows,
	// and then why. It may read files: no lock is held, and the feed does not wait for it in a scrape.
	Place func(pid int64) (Workload, string, bool)
	Hold  time.Duration // from its first sight for which a workload's counts are told as 0; default 30 s
	Await time.Duration // the longest for which labels wait for who tells of pods, where that was not asked yet; default 2 min
	Keep  time.Duration // after its end for which its series stay; default 10 min
	Limit int           // the most workloads, and the most lines of the ledger; those beyond are told as one; default 1000
	// Join leaves the owner's labels and the model off the gauges of devices: they are to be joined.
	Join   bool
	Logger *slog.Logger
}

// Attributor says who owns what in each picture, and keeps the accounts.
type Attributor struct {
	cfg Config

	mu       sync.Mutex
	turn     uint64      // pictures taken
	last     time.Time   // of the picture before
	clock    time.Time   // as last, without the times nobody looked: it never goes back
	missed   float64     // seconds nobody looked
	devices  []DeviceRef // of the last snapshot
	said     []Claim     // of them
	wards    map[string]*ward
	accounts map[key]*account
	order    []*account     // by first sight, those that were retired too
	told     int            // accounts
	tenants  map[string]int // accounts of each tenant
	folds    folds
	billed   uint64 // workloads billed to a line of type overflow
	ledger   map[telemetry.UsageAttributes]*usage
	lines    []*usage // by first sight
	clamps   map[string]uint64
	joined   map[joined]*both
	result   result
}

// process is one on a thing.
type process struct {
	Thing
	pid int64
}

// result is what is written into pictures.
type result struct {
	owners map[Thing]Owner
	told   []Owner          // the same, in order
	known  []Owner          // the same as is known now, when their labels are frozen
	seen   map[string]sight // by UUID of the device
}

// New returns an attributor that has seen nothing.
func New(cfg Config) *Attributor {
	if cfg.Hold == 0 {
		cfg.Hold = 30 * time.Second
	}
	if cfg.Await == 0 {
		cfg.Await = 2 * time.Minute
	}
	if cfg.Keep == 0 {
		cfg.Keep = 10 * time.Minute
	}
	if cfg.Limit == 0 {
		cfg.Limit = 1000
	}
	if cfg.Place == nil {
		cfg.Place = func(int64) (Workload, string, bool) { return Workload{}, "nobody is asked", false }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Attributor{
		cfg: cfg, wards: map[string]*ward{}, accounts: map[key]*account{}, ledger: map[telemetry.UsageAttributes]*usage{},
		clamps: map[string]uint64{"gpu.workload.busy.time": 0, "gpu.workload.memory.usage": 0, "gpu.workload.allocated.time": 0},
		joined: map[joined]*both{}, tenants: map[string]int{}, folds: newFolds(),
	}
}

// Stage is the Run of a snapshot.Stage. It is called for one snapshot at a time, in order.
func (a *Attributor) Stage(s *snapshot.Snapshot) {
	uses := make([][]Use, len(s.Devices))
	for i := range s.Devices {
		uses[i] = a.uses(&s.Devices[i])
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.take(s, uses)
	a.tell(s)
}

// take accounts for the time since the picture before, to who held things then, and finds who
// holds them now. uses are those of each device.
func (a *Attributor) take(s *snapshot.Snapshot, uses [][]Use) {
	a.turn++
	seconds, known := a.pass(s.Taken)
	devices := a.recall(s.Devices)
	a.devices = References(devices)
	a.said = a.claims(a.devices)
	claims := byThing(a.said)
	a.result = result{owners: map[Thing]Owner{}, seen: map[string]sight{}}
	for i := range devices {
		a.device(&devices[i], uses[i], claims, seconds, known)
	}
	a.sweep()
}

// pass is the time since the picture before; it is not known when nobody looked for long, or the
// clock was set back.
func (a *Attributor) pass(taken time.Time) (seconds float64, known bool) {
	before := a.last
	a.last = taken
	if before.IsZero() {
		a.clock = taken
		return 0, true
	}
	since := taken.Sub(before)
	if since < 0 || since > longest {
		a.missed += max(since.Seconds(), 0)
		return 0, false
	}
	a.clock = a.clock.Add(since)
	return since.Seconds(), true
}

func (a *Attributor) claims(devices []DeviceRef) []Claim {
	var all []Claim
	for _, ask := range a.cfg.Claims {
		all = append(all, ask(devices)...)
	}
	return all
}

// byThing sorts claims by what they are of.
func byThing(all []Claim) map[Thing][]Claim {
	out := make(map[Thing][]Claim, len(all))
	for _, c := range all {
		out[c.Thing] = append(out[c.Thing], c)
	}
	return out
}

// device accounts for one device and its partitions.
func (a *Attributor) device(d *snapshot.Device, uses []Use, claims map[Thing][]Claim, seconds float64, known bool) {
	uuid := d.Identity.UUID
	if uuid == "" {
		return // a device nobody has met yet is nobody's
	}
	w := a.ward(uuid)
	uses = w.remember(d, uses)
	a.result.seen[uuid] = sightOf(d, uses)
	w.rest.see(d)
	now := countsOf(&d.Read)
	since, anew := now.since(w.counts)
	since.parts = w.risen(d)
	w.counts = now
	w.seconds += seconds
	w.blind = w.blind || !known
	before := w.stakes
	w.stakes = a.stakes(d, claims, uses)
	a.meetAll(d, w, uses)
	w.blind = w.blind || silent(d) && !slices.EqualFunc(before, w.stakes, sameHolders)
	if w.blind { // the time held is known, but not whose it is what was done
		a.book(d, w, before, nil, increase{}, seconds)
		a.book(d, w, nobodys(before), nil, since, 0)
	} else {
		a.book(d, w, join(before, w.stakes), uses, since, seconds)
	}
	a.afresh(uuid, anew)
	w.taken(d, uses, since.energy.known)
}

// book books an interval of a device.
func (a *Attributor) book(d *snapshot.Device, w *ward, stakes []stake, uses []Use, since increase, seconds float64) {
	active := w.rest.active(since.energy.n, w.seconds)
	switch {
	case len(stakes) > 1:
		a.inParts(d, w, stakes, since, active, seconds)
	case len(stakes) == 1:
		o := &stakes[0].owner
		in := interval{seconds: seconds, busy: since.busy, energy: since.energy, active: active}
		a.account(w, o, in, 1, w.measured(o.Thing, uses, seconds))
		a.suffer(o, since)
	}
}

// uses returns the device's processes and their workloads. It may take long, since it reads /proc.
func (a *Attributor) uses(d *snapshot.Device) []Use {
	out := make([]Use, 0, len(d.Read.Processes))
	for i := range d.Read.Processes {
		p := &d.Read.Processes[i]
		pid, err := strconv.ParseInt(p.Labels.Get("process_pid"), 10, 64)
		if err != nil {
			continue
		}
		w, how, ok := a.cfg.Place(pid)
		if !ok {
			w = unattributed
		}
		out = append(out, Use{
			Thing: Thing{d.Identity.UUID, p.Labels.Get("gpu_partition_uuid")}, Workload: w, PID: pid, How: how,
			Memory: p.Read.Processes.MemoryUsage, Busy: p.Read.Processes.BusyTime,
		})
	}
	return out
}

// account books an interval of a thing.
func (a *Attributor) account(w *ward, o *Owner, in interval, weight float64, measured map[Workload]float64) {
	w.claimCredit(o.Thing, measured)
	parts, _, over := split(o, in, weight, measured)
	if w.keepCredit(o.Thing, over) {
		a.clamps["gpu.workload.busy.time"]++
	}
	for _, p := range parts {
		a.post(o.Thing, p)
	}
}

// meet opens the accounts of who holds a thing now, which begin at 0.
func (a *Attributor) meet(o *Owner, d *snapshot.Device, in interval, weight float64, measured map[Workload]float64) {
	parts, method, _ := split(o, in, weight, measured)
	switch {
	case silent(d):
		method = "" // as before
	case o.Partition != "" && method == bySoleOwner:
		method = byPartitions
	}
	for i, p := range parts {
		detail := Detail{}
		if i < len(o.Holders) { // they come first
			detail = o.Holders[i].Detail
		}
		if acc := a.open(o.Thing, p.workload, detail, method, d.Identity.Model); acc != nil {
			acc.model = d.Identity.Model
		}
		a.post(o.Thing, p)
	}
}

// post books a part to its workload's account, or to that of the folded.
func (a *Attributor) post(at Thing, p part) {
	if acc := a.accounts[key{at, identity(p.workload)}]; acc != nil {
		acc.book(p.bill)
		a.charge(acc)
		return
	}
	if f := a.folds.find(at, p.workload); f != nil {
		if all := a.overflowOf(at); all != nil {
			all.bill.add(p.bill)
		}
		f.unbilled.add(p.bill)
		a.chargeFold(f)
	}
}

// bookedTo returns the account that a workload is booked to: its own, or that of all that are folded. It is nil
// where there is neither.
func (a *Attributor) bookedTo(at Thing, w Workload) *account {
	if acc := a.accounts[key{at, identity(w)}]; acc != nil {
		return acc
	}
	if a.folds.find(at, w) != nil {
		return a.overflowOf(at)
	}
	return nil
}

// open returns the account of a workload on a thing, nil when the workload is folded.
func (a *Attributor) open(at Thing, w Workload, d Detail, method, model string) *account {
	hold := a.cfg.Hold
	if d.Awaited {
		hold = max(hold, a.cfg.Await)
	}
	k := key{at, identity(w)}
	acc := a.accounts[k]
	if acc == nil {
		if f := a.folds.find(at, w); f != nil {
			a.openOverflow(at)
			a.seeFold(f, w, model, hold)
			return nil
		}
	}
	if acc != nil && acc.frozen && acc.workload != w && acc.turn+1 < a.turn {
		acc.retired, acc = true, nil // it ended, and another came that has its name and not its labels
	}
	if acc == nil || !acc.frozen && acc.workload != w {
		acc = a.resume(k, w, acc)
	}
	if acc == nil {
		if !a.admit(w) {
			delete(a.accounts, k) // that of one that ended
			a.openOverflow(at)
			a.seeFold(a.folds.add(at, w, a.clock), w, model, hold)
			return nil
		}
		acc = &account{at: at, born: a.clock, workload: w, tenant: w.tenant()}
		a.accounts[k] = acc
		a.order = append(a.order, acc)
		a.enter(acc)
	}
	if acc.turn != a.turn {
		acc.turn, acc.seen, acc.memory = a.turn, a.clock, metric.Value{}
	}
	acc.settle(w, d, method, a.clock, hold)
	return acc
}

// charge moves what an account took to the ledger once its labels stand.
func (a *Attributor) charge(acc *account) {
	if !acc.frozen || acc.workload.Type == telemetry.WorkloadTypeOverflow { // whose members are charged
		return
	}
	if acc.line == nil {
		acc.line = a.line(acc.workload.usage(acc.model))
	}
	acc.line.seen = a.clock
	acc.line.add(acc.unbilled)
	acc.unbilled = bill{}
}

// sweep bills the workloads that have ended before their labels stood, and ends what nobody has
// touched for long enough.
func (a *Attributor) sweep() {
	a.sweepFolds()
	for _, acc := range a.order {
		if !acc.frozen && acc.turn != a.turn {
			acc.frozen = true
			a.charge(acc)
		}
	}
	a.order = slices.DeleteFunc(a.order, func(acc *account) bool {
		if a.clock.Sub(acc.seen) <= a.cfg.Keep {
			return false
		}
		a.leave(acc)
		if k := (key{acc.at, identity(acc.workload)}); a.accounts[k] == acc {
			delete(a.accounts, k)
		}
		return true
	})
	a.lines = slices.DeleteFunc(a.lines, func(u *usage) bool {
		if a.clock.Sub(u.seen) <= idle {
			return false
		}
		delete(a.ledger, u.who)
		return true
	})
	for uuid, w := range a.wards {
		if w.turn != a.turn {
			delete(a.wards, uuid)
		}
	}
}

// add keeps who owns a thing, as is known now and as is told.
func (r *result) add(known, told Owner) {
	r.owners[told.Thing] = told
	r.known, r.told = append(r.known, known), append(r.told, told)
}
