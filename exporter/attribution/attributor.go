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
	// Claims are who was given what, from memory: it is asked for every picture.
	Claims []func([]snapshot.Device) []Claim
	// Place says whose work a process of the host does, and how that was found; false when nobody knows,
	// and then why.
	Place func(pid int64) (Workload, string, bool)
	Hold  time.Duration // from its first sight for which a workload's counts are told as 0; default 30 s
	Keep  time.Duration // after its end for which its series stay; default 10 min
	Limit int           // the most workloads; those beyond are told as one; default 1000
	// Join leaves the owner's labels off the gauges of devices: they are to be joined.
	Join   bool
	Logger *slog.Logger
}

// Attributor says who owns what in each picture, and keeps the accounts.
type Attributor struct {
	cfg Config

	mu       sync.Mutex
	last     time.Time        // of the picture before
	counts   map[Thing]counts // as it told them
	rest     map[string]*baseline
	busy     map[process]float64 // seconds of each process, as the picture before told them
	accounts map[key]*account
	order    []*account // by first sight
	folded   map[key]bool
	ledger   map[telemetry.UsageAttributes]*usage
	lines    []*usage // by first sight
	clamps   map[string]float64
	joined   map[joined]*metric.Labels
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
	list   []Owner
	seen   map[string]sight // by UUID of the device
}

// New returns an attributor that has seen nothing.
func New(cfg Config) *Attributor {
	if cfg.Hold == 0 {
		cfg.Hold = 30 * time.Second
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
		cfg: cfg, counts: map[Thing]counts{}, rest: map[string]*baseline{}, busy: map[process]float64{},
		accounts: map[key]*account{}, folded: map[key]bool{}, ledger: map[telemetry.UsageAttributes]*usage{}, clamps: map[string]float64{}, joined: map[joined]*metric.Labels{},
	}
}

// Stage is the snapshot.Stage. A picture composed for a scrape that could not wait is told the
// owners and accounts of the one before, and counts nothing.
func (a *Attributor) Stage(s *snapshot.Snapshot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !s.Partial {
		a.take(s)
	}
	a.tell(s)
}

// take accounts for the time since the picture before.
func (a *Attributor) take(s *snapshot.Snapshot) {
	seconds := s.Taken.Sub(a.last).Seconds()
	if a.last.IsZero() || seconds < 0 || seconds > longest.Seconds() {
		seconds = 0 // nothing is known of it
	}
	a.last = s.Taken
	claims := a.claims(s.Devices)
	a.result = result{owners: map[Thing]Owner{}, seen: map[string]sight{}}
	busy := map[process]float64{}
	for i := range s.Devices {
		a.device(&s.Devices[i], claims, seconds, busy)
	}
	a.busy = busy
	a.sweep(s.Taken)
}

func (a *Attributor) claims(devices []snapshot.Device) []Claim {
	var all []Claim
	for _, ask := range a.cfg.Claims {
		all = append(all, ask(devices)...)
	}
	return all
}

// device accounts for one device and its partitions.
func (a *Attributor) device(d *snapshot.Device, claims []Claim, seconds float64, busy map[process]float64) {
	uuid := d.Identity.UUID
	if uuid == "" {
		return // a device nobody has met yet is nobody's
	}
	uses := a.uses(d)
	a.result.seen[uuid] = sightOf(d, uses)
	b := a.rest[uuid]
	if b == nil {
		b = new(baseline)
		a.rest[uuid] = b
	}
	b.see(&d.Read)
	now := countsOf(&d.Read)
	whole := Thing{Device: uuid}
	since := now.since(a.counts[whole])
	a.counts[whole] = now

	if len(d.Read.Partitions) > 0 {
		a.partitions(d, claims, uses, since, b, seconds)
		return
	}
	owner := own(whole, claims, uses)
	a.result.add(owner)
	in := interval{seconds: seconds, busy: since.busy, energy: since.energy, active: b.active(since.energy.n, seconds)}
	measured := a.measured(whole, uses, busy)
	a.account(&owner, d, in, 1, measured)
	a.suffer(&owner, since)
	a.hold(&owner, d.Read.Memory.Usage, uses, d.Read.Processes != nil)
}

// uses are the device's processes and whose they are.
func (a *Attributor) uses(d *snapshot.Device) []Use {
	var out []Use
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

// measured are the seconds each workload's processes worked since the picture before; nil when the
// driver measures none.
func (a *Attributor) measured(at Thing, uses []Use, busy map[process]float64) map[Workload]float64 {
	var out map[Workload]float64
	for _, u := range uses {
		n, ok := u.Busy.Get()
		if !ok || u.Thing != at {
			continue
		}
		if out == nil {
			out = map[Workload]float64{}
		}
		p := process{at, u.PID}
		busy[p] = n
		if before, met := a.busy[p]; met && n > before {
			out[u.Workload] += n - before
		} else if !met {
			out[u.Workload] += 0 // its count began before it was seen
		}
	}
	return out
}

// account books an interval.
func (a *Attributor) account(o *Owner, d *snapshot.Device, in interval, weight float64, measured map[Workload]float64) {
	parts, method, clamped := split(o, in, weight, measured)
	if clamped {
		a.clamps["gpu.workload.busy.time"]++
	}
	for _, p := range parts {
		detail := Detail{}
		how := method
		for _, h := range o.Holders {
			if h.Workload == p.workload {
				detail = h.Detail
			}
		}
		if acc := a.open(o.Thing, p.workload, detail, how); acc != nil {
			acc.model = d.Identity.Model
			acc.book(p.bill)
			a.charge(acc)
		}
	}
}

// open returns the account of a workload on a thing. Beyond the limit, the newest share one.
func (a *Attributor) open(at Thing, w Workload, d Detail, method string) *account {
	k := key{at, identity(w)}
	if a.folded[k] {
		k, w, d = key{at, overflow}, overflow, Detail{}
	}
	acc := a.accounts[k]
	if acc == nil {
		if w.Type < telemetry.WorkloadTypeUnattributed && len(a.accounts) >= a.cfg.Limit {
			a.folded[k] = true
			return a.open(at, w, d, method)
		}
		acc = &account{at: at, born: a.last}
		a.accounts[k] = acc
		a.order = append(a.order, acc)
	}
	acc.settle(w, d, method, a.last, a.cfg.Hold)
	return acc
}

// charge moves what an account took to the ledger once its labels stand.
func (a *Attributor) charge(acc *account) {
	if !acc.frozen {
		return
	}
	who := acc.workload.usage(acc.model)
	line := a.ledger[who]
	if line == nil {
		line = &usage{labels: who.Labels(), born: a.last}
		a.ledger[who] = line
		a.lines = append(a.lines, line)
	}
	line.add(acc.unbilled)
	acc.unbilled = bill{}
}

// sweep bills the workloads that have ended before their labels stood, and ends the accounts nobody
// has touched for long enough.
func (a *Attributor) sweep(now time.Time) {
	for _, acc := range a.order {
		if !acc.frozen && !acc.seen.Equal(now) {
			acc.frozen = true
			a.charge(acc)
		}
	}
	a.order = slices.DeleteFunc(a.order, func(acc *account) bool {
		if now.Sub(acc.seen) <= a.cfg.Keep {
			return false
		}
		delete(a.accounts, key{acc.at, identity(acc.workload)})
		return true
	})
	if len(a.accounts) < a.cfg.Limit/2 {
		clear(a.folded)
	}
}

// add keeps who owns a thing.
func (r *result) add(o Owner) {
	r.owners[o.Thing] = o
	r.list = append(r.list, o)
}

// hold books what each workload holds now.
func (a *Attributor) hold(o *Owner, used metric.Value, uses []Use, listed bool) {
	total, known := used.Get()
	sums := map[Workload]float64{}
	whole := listed
	for _, u := range uses {
		if u.Thing != o.Thing {
			continue
		}
		n, ok := u.Memory.Get()
		if !ok {
			whole = false // of one it is not known, so of none
			break
		}
		sums[u.Workload] += n
	}
	rest := total
	for _, h := range o.Holders {
		acc := a.accounts[key{o.Thing, identity(h.Workload)}]
		if acc == nil {
			continue
		}
		switch {
		case whole:
			n := 0.
			for w, bytes := range sums {
				if samePod(w, h.Workload) {
					n += bytes
				}
			}
			acc.memory.Set(n)
			rest -= n
		case o.Sole() != nil && known:
			acc.memory.Set(total)
			rest = 0
		default:
			acc.memory.Fail(metric.Unsupported)
		}
	}
	if acc := a.accounts[key{o.Thing, unattributed}]; acc != nil {
		if known {
			if rest < 0 {
				a.clamps["gpu.workload.memory.usage"]++
			}
			acc.memory.Set(max(rest, 0))
		} else {
			acc.memory.Fail(metric.Unsupported)
		}
	}
}
