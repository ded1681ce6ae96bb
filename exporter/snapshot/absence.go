package snapshot

import "github.com/gpumeter/gpumeter/exporter/telemetry"

// absence is why devices are not asked.
type absence struct {
	all     bool            // they are released
	sources map[string]bool // let go of them, and have not tried to open again
	hung    map[*known]bool // keep their driver from being let go of
}

// look returns who can be asked, and why others can not, at one instant.
func (f *Feed) look() ([]*worker, absence) {
	until, _ := f.hold.released()
	a := absence{all: !until.IsZero(), sources: map[string]bool{}, hung: map[*known]bool{}}
	var workers []*worker
	for _, k := range f.keepers {
		k.set(func() {
			if !a.all || k.hold == nil { // of a released one, they are about to stop
				workers = append(workers, k.workers...)
			}
			a.sources[k.src.Name] = k.away
			for _, w := range k.draining {
				a.hung[w.known] = a.hung[w.known] || a.all && k.stuck && !w.ended()
			}
		})
	}
	return workers, a
}

// state of a device that is absent for a reason; 0, which is ok, where there is none.
func (a absence) state(k *known) telemetry.State {
	let := a.all
	for source, away := range a.sources {
		_, its := k.uuids[source]
		let = let || away && (its || !k.met())
	}
	switch {
	case a.hung[k]:
		return telemetry.StateLate
	case let:
		return telemetry.StateReleased
	}
	return telemetry.StateOK
}

// unasked is the state of a device that is absent for no reason, or was let go of and taken back since.
func (k *known) unasked(let bool) telemetry.State {
	switch {
	case let:
		return telemetry.StateReleased
	case k.found:
		return telemetry.StateLost
	}
	return telemetry.StateMissing
}
