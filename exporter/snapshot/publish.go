package snapshot

// publish makes a snapshot of a finished round and answers the scrapes that wait for it. It takes at most
// as long as a device may: when the stages take longer, the scrapes get a partial snapshot.
func (f *Feed) publish(r *round) {
	f.mu.Lock()
	r.read = true
	slots := r.arrived()
	f.mu.Unlock()
	f.ledger.book(r.taken, slots)
	s := f.build(r, slots)
	complete := f.stages.complete(s)
	if !complete {
		s = f.partial(r)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	r.result = s
	if f.round == r { // else devices were released or acquired in between
		f.round = nil
		if complete {
			f.last = s
		}
	}
	close(r.done)
}

// forget makes sure that no later scrape gets a snapshot from before a release or its end. The lock is held.
func (f *Feed) forget() {
	f.last = nil
	if f.round != nil && f.round.read { // its stages may take their time; the scrapes that wait for it still get it
		f.round = nil
	}
}

// partial returns a snapshot for a scrape that cannot wait. It has the readings that have arrived, and the
// owners, workloads and other results of the stages of the newest complete snapshot. Without them, one slow
// scrape would start another series of every gauge, and workloads would look as if they had ended. Before
// the first complete snapshot there are none.
func (f *Feed) partial(r *round) *Snapshot {
	s := f.build(r, r.arrived())
	s.Partial = true
	f.stages.partial(s)
	return s
}

// build makes a snapshot of what has arrived of a round, without what the stages add.
func (f *Feed) build(r *round, slots []slot) *Snapshot {
	_, gone := f.look()
	s := &Snapshot{Taken: r.taken, Devices: f.devices.compose(slots, r.gone, gone), Health: f.ledger.health()}
	for _, x := range slots {
		if x.reading.host != nil && x.reading.why == nil {
			s.Host = x.reading.host
		}
		for _, e := range x.reading.served {
			if e.why == nil && x.reading.why == nil {
				s.Engines = append(s.Engines, e.Part)
			}
		}
	}
	for _, k := range f.keepers {
		h := k.health()
		h.Duration = f.ledger.duration(h.Name)
		s.Health.Sources = append(s.Health.Sources, h)
	}
	return s
}
