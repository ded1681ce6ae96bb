package kubernetes

import (
	"cmp"
	"slices"
)

// Holding is one id held by one container.
type Holding struct {
	Namespace, Pod, Container string
	UID                       string // of the pod, where the kubelet's checkpoint tells; see Client.Holder
	Resource                  string // nvidia.com/gpu; of a DRA device the driver, gpu.nvidia.com
	ID                        string // as the plugin or the driver names the device
	Ref                       Ref    // what that means
	Replicas                  int    // how many ids there are for the same thing, this one included; 0: not told
	Claim                     Claim  // of a DRA device
}

// Claim says how a DRA device was given.
type Claim struct {
	Namespace, Name      string // of the ResourceClaim
	Driver, Pool, Device string // together the name of the device
	Share                string // of a device that is shared by several claims
}

// Holdings is who held what when the kubelet was last asked. It is never changed.
type Holdings struct {
	Health                // Read is when the kubelet told what All returns; older than a few polls only with a Reason
	Generation uint64     // rises by one when All has changed
	Ended      int        // pods left out because they have ended, though the kubelet still lists them
	list       []Holding  // ordered by what is held, then by who holds it
	of         map[Key]at // where in list
}

// at is a run within a list.
type at struct{ from, to int }

// NewHoldings are those of a list, for whoever has no kubelet to ask.
func NewHoldings(list ...Holding) *Holdings {
	list = slices.Clone(list)
	return &Holdings{of: arrange(list), list: list}
}

// All are the holdings, ordered by what is held, then by who holds it. They are not to be changed.
func (h *Holdings) All() []Holding { return h.list }

// Of are the holdings of what the Key names, its parts and its shares. They are not to be changed.
func (h *Holdings) Of(k Key) []Holding {
	run := h.of[k]
	return h.list[run.from:run.to:run.to]
}

// arrange sorts holdings and finds the runs of each Key.
func arrange(list []Holding) map[Key]at {
	slices.SortFunc(list, func(a, b Holding) int {
		return cmp.Or(
			cmp.Compare(a.Ref.By, b.Ref.By), cmp.Compare(a.Ref.Name, b.Ref.Name), cmp.Compare(a.Ref.Number, b.Ref.Number),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container),
			cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Claim.Name, b.Claim.Name),
			cmp.Compare(a.Claim.Pool, b.Claim.Pool), cmp.Compare(a.Claim.Share, b.Claim.Share),
		)
	})
	of := map[Key]at{}
	for i, h := range list {
		run, ok := of[h.Ref.Key]
		if !ok {
			run.from = i
		}
		run.to = i + 1
		of[h.Ref.Key] = run
	}
	return of
}
