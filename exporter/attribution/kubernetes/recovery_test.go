package kubernetes

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// A kubelet that has started again knows no pods until the API server has told it of them, and says so
// as if there were none.
func TestKubeletStartsAgain(t *testing.T) {
	k := newFakeKubelet(t)
	k.offers = offers(gpu, "GPU-"+id1+"::0", "GPU-"+id1+"::1", "GPU-"+id2)
	a, b := held("dev", "a", "c", gpu, "GPU-"+id1+"::0"), held("dev", "b", "c", gpu, "GPU-"+id2)
	k.holds(a, b)
	c := clientOf(t, k.start())
	until(t, "it is read", func() bool { return len(c.Holdings().All()) == 2 })
	before := c.Holdings()
	again := func(all ...*podresources.PodResources) {
		t.Helper()
		k.stop()
		k.holds(all...)
		k.offers = offers("rdma/hca", "0") // the plugin of the GPUs is yet to come back
		lists, connections := k.lists.Load(), c.Counts().Connections
		k.start()
		until(t, "it has listed often", func() bool { return k.lists.Load() > lists+3 && c.Counts().Connections > connections })
	}
	again()
	if h := c.Holdings(); h.Generation != before.Generation || h.Reason != "" || !slices.Equal(who(h), who(before)) {
		t.Errorf("while it knows no pods: %+v %q", h.Health, who(h))
	}
	listed := func(all ...*podresources.PodResources) {
		t.Helper()
		k.holds(all...)
		lists := k.lists.Load()
		until(t, "it has listed", func() bool { return k.lists.Load() > lists+3 })
	}
	listed(b)
	if h := c.Holdings(); h.Generation != before.Generation {
		t.Errorf("while it knows some: %q", who(h))
	}
	listed(a, b)
	if h := c.Holdings(); h.Generation != before.Generation || h.All()[1].Replicas != 2 {
		t.Errorf("once it knows all: generation %d, %+v", h.Generation, h.All())
	}
	k.holds(b)
	until(t, "a is gone at once", func() bool { return slices.Equal(who(c.Holdings()), []string{"dev/b/c UUID GPU-" + id2}) })
	again(held("dev", "new", "c", gpu, "GPU-"+id2))
	if got := who(c.Holdings()); !slices.Equal(got, []string{"dev/new/c UUID GPU-" + id2}) {
		t.Errorf("what another has been given: %q", got)
	}
}

func TestRecovery(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	id := func(pod, id string) Holding {
		return Holding{Namespace: "n", Pod: pod, Container: "c", Resource: gpu, ID: id}
	}
	dra := func(pod, claim, share string) Holding {
		return Holding{Namespace: "n", Pod: pod, Container: "c", Resource: "gpu.nvidia.com", ID: "gpu-0", Claim: Claim{Name: claim, Driver: "gpu.nvidia.com", Device: "gpu-0", Share: share}}
	}
	for name, x := range map[string]struct {
		before, list []Holding
		pods         int
		after        time.Duration
		want         []string
	}{
		"nothing was held":                {nil, []Holding{id("a", "0")}, 1, 0, []string{"a"}},
		"none is listed yet":              {[]Holding{id("a", "0")}, nil, 0, blank - 1, []string{"a"}},
		"none is listed, and stays so":    {[]Holding{id("a", "0")}, nil, 0, blank, nil},
		"pods without devices are listed": {[]Holding{id("a", "0")}, nil, 3, recovering - 1, []string{"a"}},
		"and it stays so":                 {[]Holding{id("a", "0")}, nil, 3, recovering, nil},
		"some are listed":                 {[]Holding{id("a", "0"), id("b", "1")}, []Holding{id("b", "1")}, 1, 0, []string{"b", "a"}},
		"another has the id":              {[]Holding{id("a", "0")}, []Holding{id("b", "0")}, 1, 0, []string{"b"}},
		"a claim of two pods":             {[]Holding{dra("a", "x", ""), dra("b", "x", "")}, []Holding{dra("b", "x", "")}, 1, 0, []string{"b", "a"}},
		"another claim has the device":    {[]Holding{dra("a", "x", "")}, []Holding{dra("b", "y", "")}, 1, 0, []string{"b"}},
		"another share of the device":     {[]Holding{dra("a", "x", "1")}, []Holding{dra("b", "y", "2")}, 1, 0, []string{"b", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var r recovery
			r.begin(x.before, start)
			var got []string
			for _, h := range r.restore(x.list, x.pods, start.Add(x.after)) {
				got = append(got, h.Pod)
			}
			if !slices.Equal(got, x.want) {
				t.Errorf("held by %q, want %q", got, x.want)
			}
		})
	}
}

// Offers are asked for again soon while what is held as a share is not among them.
func TestOffersThatLack(t *testing.T) {
	k := newFakeKubelet(t)
	var back atomic.Bool // the plugin
	k.offers = func() (*podresources.AllocatableResourcesResponse, error) {
		if !back.Load() {
			return offers("rdma/hca", "0")()
		}
		return offers(gpu, "GPU-"+id1+"::0", "GPU-"+id1+"::1")()
	}
	k.holds(held("dev", "a", "c", gpu, "GPU-"+id1+"::0"))
	var later atomic.Int64 // ns
	c := clientOf(t, k.start(), func(c *Config) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	})
	until(t, "it is read", func() bool { return len(c.Holdings().All()) == 1 })
	back.Store(true)
	lists := k.lists.Load()
	until(t, "it is asked often", func() bool { return k.lists.Load() > lists+3 })
	if n := c.Holdings().All()[0].Replicas; n != 0 {
		t.Errorf("%d replicas before it was asked again", n)
	}
	later.Store(int64(offersSoon))
	until(t, "they are known", func() bool { return c.Holdings().All()[0].Replicas == 2 })
}
