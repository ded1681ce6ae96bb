package sim

// road is one of the ways bytes go.
type road int

const (
	nvlinkOut road = iota // away from the board, over each of its NVLinks
	nvlinkIn
	pcieOut
	pcieIn
	roads
)

// haul is what a kind of work moves each way while a kernel runs, ‰ of what the way can carry.
type haul [roads]float64

// Training exchanges what the boards of a job learned, reads samples and says how it goes.
// Answering requests passes on what is half computed, reads them and answers.
var (
	hauledByTraining = haul{nvlinkOut: 350, nvlinkIn: 350, pcieOut: 2, pcieIn: 6}
	hauledByServing  = haul{nvlinkOut: 120, nvlinkIn: 120, pcieOut: 5, pcieIn: 9}
)

// overHost is what of that goes through the host where boards of a job have no NVLink, ‰.
const overHost = 180

// chatter is what the driver and those who watch a board say and hear, in bytes a second, as was seen
// of boards at rest.
var chatter = [roads]float64{pcieOut: 400e3, pcieIn: 350e3}

// moved is what a duty did with links: hundred thousandths of a second of hauling at full speed, and
// bytes of jobs that loaded and of checkpoints that were written.
type moved struct{ hauled, loaded, saved int64 }

func (m *moved) add(o moved, times int64) {
	m.hauled += times * o.hauled
	m.loaded += times * o.loaded
	m.saved += times * o.saved
}

// moves is what the duty does in a tick. A job that loads reads its model from the host; a checkpoint
// is a third of the memory. pace is the speed of the clocks under what holds them down, ‰.
func (d *duty) moves(tick, pace int64) moved {
	m := moved{hauled: d.load.busy * pace}
	if d.job != nil && tick-d.job.from < d.job.ramp {
		m.loaded = d.whole()/d.job.ramp + 1
	}
	if d.load.saves {
		m.saved = d.whole() / 3 / d.plan.pause
	}
	return m
}

// bytes is what that makes on a way: each second, or since the driver was loaded.
func (d *duty) bytes(b *board, r road, slices int64, hauled, loaded, saved float64) float64 {
	h := &hauledByTraining
	if d.plan.serving {
		h = &hauledByServing
	}
	share, capacity := h[r], b.pcie.speed(b.pcie.generation)
	switch {
	case r <= nvlinkIn && d.plan.mates == 1:
		return 0
	case r <= nvlinkIn:
		capacity = float64(b.nvlink.speed) * mega
	case d.plan.mates > 1 && b.nvlink.links == 0:
		share += overHost
	}
	n := capacity * share * milli * hauled * percent * milli * float64(d.slices) / float64(slices)
	switch r {
	case pcieIn:
		n += loaded
	case pcieOut:
		n += saved
	}
	return n
}

// carried is how many bytes went a way since the driver was loaded, and how many go each second now.
func (x *physics) carried(r road) (bytes, perSecond float64) {
	bytes, perSecond = chatter[r]*x.seen.Seconds(), chatter[r]
	for i := range x.duties {
		d, sum := &x.duties[i], &x.sum.moved[i]
		now := d.moves(x.tick, x.now.pace)
		hauled, loaded, saved := float64(now.hauled), float64(now.loaded), float64(now.saved)
		perSecond += d.bytes(x.board, r, x.slices, hauled, loaded, saved)
		bytes += d.bytes(x.board, r, x.slices,
			x.total(sum.hauled, func(s *sums) int64 { return s.moved[i].hauled }, hauled),
			x.total(sum.loaded, func(s *sums) int64 { return s.moved[i].loaded }, loaded),
			x.total(sum.saved, func(s *sums) int64 { return s.moved[i].saved }, saved))
	}
	return bytes, perSecond
}

// awake is 1 while the NVLinks carry something, else 0: they then sleep.
func (x *physics) awake() int64 {
	for i := range x.duties {
		if d := &x.duties[i]; d.plan.mates > 1 && d.load.busy > 0 {
			return 1
		}
	}
	return 0
}

// awakeSeconds is for how long the NVLinks carried anything.
func (x *physics) awakeSeconds() float64 {
	return x.total(x.sum.awake, func(s *sums) int64 { return s.awake }, float64(x.awake()))
}
