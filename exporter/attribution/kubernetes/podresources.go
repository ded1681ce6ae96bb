package kubernetes

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const (
	// lookEvery is how often socket and checkpoint are looked at: what changes there is asked for at once.
	lookEvery = time.Second
	// offersEvery is how often the kubelet is asked which ids there are, and offersSoon how often while
	// some that are held are not among them: after it has started again plugins are yet to come back.
	offersEvery, offersSoon = 5 * time.Minute, 15 * time.Second
	// longestPause between two tries, and that after an answer too large, which costs the kubelet most.
	longestPause, largePause = 30 * time.Second, 5 * time.Minute
)

// poller asks the kubelet who holds what. All but latest belongs to the goroutine that runs it.
type poller struct {
	socket        watched
	every, within time.Duration
	now           func() time.Time
	log           *slog.Logger
	counts        *counts
	health        *health
	ledger        *ledger
	told          func(Claim) (Attributes, bool)
	wanted        func(Claim)   // a device of which told says nothing
	ended         *endings      // who of those listed has ended
	unheard       func()        // a pod holds devices and nobody has told of it
	hint          chan struct{} // to poll at once
	stirred       *atomic.Bool  // the node has other pods
	latest        atomic.Pointer[Holdings]

	line    *line
	made    uint64 // connections of the line so far
	back    recovery
	offers  map[Ref]int
	offered time.Time // when offers were asked for
	lacking bool      // something is held as a share and is not among the offers
	fails   int       // in a row
}

// run polls until the context ends. Two questions are never open at once.
func (p *poller) run(ctx context.Context) {
	defer p.hangUp()
	p.socket.changed()
	p.ledger.file.changed()
	p.ledger.read(ctx)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		pause := p.every
		if reason := p.poll(ctx); reason != "" {
			pause = p.pause(reason)
		}
		if !p.wait(ctx, pause, look.C) {
			return
		}
	}
}

// pause grows with each failure in a row. Half of it is chance, so that the exporters of a fleet whose
// kubelets are restarted together do not stay together.
func (p *poller) pause(r Reason) time.Duration {
	most := longestPause
	if r == TooLarge {
		most = largePause
	}
	pause := min(p.every<<min(p.fails, 10), max(most, p.every))
	return pause/2 + rand.N(pause/2+1)
}

// wait returns when it is time to poll; false: the context has ended.
func (p *poller) wait(ctx context.Context, pause time.Duration, look <-chan time.Time) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-p.hint:
			return true
		case <-look:
			if p.look(ctx) {
				return true
			}
		}
	}
}

// look says whether the kubelet has started again, or has given devices away, or pods came or went.
func (p *poller) look(ctx context.Context) bool {
	socket, checkpoint := p.socket.changed(), p.ledger.file.changed()
	switch {
	case !socket || p.line == nil:
	case p.line.elsewhere(p.socket.last):
		p.hangUp() // whoever is behind the old file may be hanging, and not go away
	default:
		p.line.ResetConnectBackoff()
	}
	if checkpoint {
		p.ledger.read(ctx)
	}
	return p.stirred.Swap(false) || socket || checkpoint
}

// hangUp closes the connection; the next poll opens another.
func (p *poller) hangUp() {
	if p.line != nil {
		p.line.Close() //nolint:errcheck // nothing is left to lose
		p.line = nil
	}
}

// poll asks once, and publishes what is then known. It returns why it failed, if it did.
func (p *poller) poll(ctx context.Context) Reason {
	list, err := p.ask(ctx)
	was := p.latest.Load()
	next := &Holdings{Generation: was.Generation, Ended: was.Ended, list: was.list, of: was.of}
	if failed, ok := errors.AsType[*Error](err); ok {
		if ctx.Err() != nil {
			return failed.Reason // we are ending; the kubelet has done nothing wrong
		}
		p.fails++
		p.health.ill(failed.Reason, failed.Err)
	} else {
		p.fails = 0
		p.health.well()
		var unheard bool
		if list, next.Ended, unheard = p.ended.leaveOut(list); unheard {
			p.unheard()
		}
		if of := arrange(list); !slices.Equal(list, was.list) {
			next.Generation, next.list, next.of = was.Generation+1, list, of
		}
	}
	next.Health = p.health.get()
	p.latest.Store(next)
	return next.Reason
}

// ask puts the questions, each with its own deadline.
func (p *poller) ask(ctx context.Context) ([]Holding, error) {
	if p.line == nil {
		line, err := openLine(p.socket.path)
		if err != nil {
			return nil, &Error{PodResources, Broken, err}
		}
		p.line, p.made = line, 0
	}
	lister := podresources.NewPodResourcesListerClient(p.line)
	p.counts.ask(PodResources)
	limited, cancel := context.WithTimeout(ctx, p.within)
	answer, err := lister.List(limited, &podresources.ListPodResourcesRequest{})
	cancel()
	if made := p.line.made.Load(); made != p.made {
		p.counts.connections.Add(made - p.made)
		p.made, p.offered = made, time.Time{}
		p.back.begin(p.latest.Load().list, p.now())
	}
	if err != nil {
		return nil, &Error{PodResources, p.line.why(err), err}
	}
	now := p.now()
	if age := now.Sub(p.offered); p.offered.IsZero() || age >= offersEvery || p.lacking && age >= offersSoon {
		p.offered = now
		p.askOffers(ctx, lister)
	}
	a := assembly{uid: p.ledger.uid, told: p.told, offers: p.offers, valid: map[string]bool{}}
	for _, pod := range answer.GetPodResources() {
		a.pod(pod)
	}
	p.counts.rejected.Add(uint64(a.broken))
	uids := map[string]bool{}
	p.lacking = false
	for _, h := range a.list {
		uids[h.UID] = true
		p.lacking = p.lacking || h.Ref.Shared && h.Replicas == 0 && h.Claim == (Claim{})
		if h.Claim != (Claim{}) {
			p.wanted(h.Claim)
		}
	}
	p.ledger.listed(uids)
	return p.back.restore(a.list, len(answer.GetPodResources()), now), nil
}

// askOffers asks which ids there are, to know how many share a device. A kubelet before 1.23, or with
// the question switched off, does not answer; its checkpoint tells the same.
func (p *poller) askOffers(ctx context.Context, lister podresources.PodResourcesListerClient) {
	offers := map[Ref]int{}
	p.counts.ask(PodResources)
	limited, cancel := context.WithTimeout(ctx, p.within)
	defer cancel()
	answer, err := lister.GetAllocatableResources(limited, &podresources.AllocatableResourcesRequest{})
	if err == nil {
		for _, d := range answer.GetDevices() {
			replicas(d.GetResourceName(), d.GetDeviceIds(), offers)
		}
	} else {
		p.counts.fail(PodResources, p.line.why(err))
		p.log.Debug("kubernetes: which devices there are is read from the checkpoint", "err", err)
		for resource, ids := range p.ledger.offers {
			replicas(resource, ids, offers)
		}
	}
	// What is held stays as it was, also while its plugin is away or says that it is ill.
	for _, h := range p.latest.Load().list {
		what := Parse(h.Resource, h.ID).whole()
		if n := p.offers[what]; offers[what] == 0 && n > 0 {
			offers[what] = n
		}
	}
	p.offers = offers
}
