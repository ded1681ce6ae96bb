package kubernetes

import (
	"context"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const gpu = "nvidia.com/gpu"

func offers(resource string, ids ...string) func() (*podresources.AllocatableResourcesResponse, error) {
	return func() (*podresources.AllocatableResourcesResponse, error) {
		return &podresources.AllocatableResourcesResponse{Devices: []*podresources.ContainerDevices{{ResourceName: resource, DeviceIds: ids}}}, nil
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestHoldings(t *testing.T) {
	k := newFakeKubelet(t)
	k.offers = offers(gpu, "GPU-"+id1+"::0", "GPU-"+id1+"::1", "GPU-"+id1+"::2", "GPU-"+id2+"::0")
	share := &podresources.ClaimResource{DriverName: "gpu.nvidia.com", PoolName: "node-1", DeviceName: "gpu-1", ShareId: proto.String("b6d6f0f2-0000-4000-8000-000000000002")}
	cdi := &podresources.ClaimResource{DriverName: "example.com", PoolName: "p", DeviceName: "what", CdiDevices: []*podresources.CDIDevice{{Name: "nvidia.com/gpu=MIG-" + id2}}}
	k.holds(
		held("dev", "b", "c", gpu, "GPU-"+id1+"::1", "GPU-"+id1+"::2"),
		held("dev", "a", "c", gpu, "GPU-"+id1+"::0"),
		held("serving", "alone", "vllm", gpu, "GPU-"+id2+"::0"),
		held("net", "nic", "c", "rdma/hca", "0"),
		&podresources.PodResources{Namespace: "kube-system", Name: "cpu-only", Containers: []*podresources.ContainerResources{{Name: "c"}}},
		claimed("shared", share), claimed("cdi", cdi),
	)
	c := clientOf(t, k.start())
	until(t, "it is read", func() bool { return !c.Holdings().Read.IsZero() })
	h := c.Holdings()
	if h.Reason != "" || h.Generation != 1 || len(h.All()) != 7 {
		t.Fatalf("%+v", h)
	}
	shared := h.Of(Key{By: ByUUID, Name: "GPU-" + id1})
	if len(shared) != 3 || shared[0].Pod != "a" || shared[2].ID != "GPU-"+id1+"::2" || shared[1].Replicas != 3 || !shared[1].Ref.Shared || shared[1].Ref.Replica != 1 {
		t.Errorf("of a shared device: %+v", shared)
	}
	alone := h.Of(Key{By: ByUUID, Name: "GPU-" + id2})
	if len(alone) != 1 || alone[0].Replicas != 1 || alone[0].Ref.Shared || alone[0].Container != "vllm" || alone[0].Resource != gpu {
		t.Errorf("of a device offered once, though as a share: %+v", alone)
	}
	dra := h.Of(Key{By: ByMinor, Number: 1})
	want := Claim{Namespace: "ml", Name: "claim-shared", Driver: "gpu.nvidia.com", Pool: "node-1", Device: "gpu-1", Share: *share.ShareId}
	if len(dra) != 1 || dra[0].Claim != want || !dra[0].Ref.Shared || dra[0].ID != "gpu-1" || dra[0].Resource != "gpu.nvidia.com" {
		t.Errorf("of a DRA device: %+v", dra)
	}
	if mig := h.Of(Key{By: ByMIG, Name: "MIG-" + id2}); len(mig) != 1 || mig[0].ID != "what" {
		t.Errorf("of a device only CDI names: %+v", mig)
	}
	if raw := h.Of(Key{}); len(raw) != 1 || raw[0].ID != "0" || raw[0].Resource != "rdma/hca" {
		t.Errorf("what is of no known form is kept raw: %+v", raw)
	}
	if h.Of(Key{By: ByMinor, Number: 7}) != nil && len(h.Of(Key{By: ByMinor, Number: 7})) != 0 {
		t.Error("somebody holds what nobody holds")
	}
	counts := c.Counts()
	if counts.Connections != 1 || counts.Rejected != 0 || counts.Asked[PodResources] < 2 {
		t.Errorf("%+v", counts)
	}
	if n, there := counts.Failures[PodResources][RateLimited]; n != 0 || !there {
		t.Errorf("a reason that did not occur is not there as 0: %v", counts.Failures)
	}
}

// The kubelet lists pods in any order; only what changes is a change.
func TestGeneration(t *testing.T) {
	k := newFakeKubelet(t)
	a, b := held("dev", "a", "c", gpu, "GPU-"+id1), held("dev", "b", "c", gpu, "GPU-"+id2)
	swap := false
	k.answers(func(context.Context) (*podresources.ListPodResourcesResponse, error) {
		list := []*podresources.PodResources{a, b}
		if swap = !swap; swap {
			slices.Reverse(list)
		}
		return &podresources.ListPodResourcesResponse{PodResources: list}, nil
	})
	c := clientOf(t, k.start())
	until(t, "it polls often", func() bool { return k.lists.Load() > 10 })
	before := c.Holdings()
	if before.Generation != 1 {
		t.Errorf("generation %d after %d lists of the same", before.Generation, k.lists.Load())
	}
	k.holds(a)
	until(t, "b is gone", func() bool { return len(c.Holdings().All()) == 1 })
	if g := c.Holdings().Generation; g != 2 {
		t.Errorf("generation %d after one change", g)
	}
	if len(before.All()) != 2 {
		t.Error("holdings that were handed out have changed")
	}
}

// What is of no sense costs itself, and is counted.
func TestHostileHoldings(t *testing.T) {
	k := newFakeKubelet(t)
	good := held("dev", "good", "c", gpu, "GPU-"+id1)
	good.Containers[0].Devices[0].DeviceIds = append(good.Containers[0].Devices[0].DeviceIds, "", "new\nline", strings.Repeat("x", longestRaw+1)) // 3
	good.Containers = append(good.Containers,
		&podresources.ContainerResources{Name: "Bad_Name", Devices: good.Containers[0].Devices},                                  // 1
		&podresources.ContainerResources{Name: "c2", Devices: []*podresources.ContainerDevices{{ResourceName: "no resource"}}},   // 1
		&podresources.ContainerResources{Name: "c3", DynamicResources: []*podresources.DynamicResource{{ClaimName: "no claim"}}}, // 1
	)
	k.holds(good,
		held("dev", "UPPER", "c", gpu, "GPU-"+id2),                     // 1
		held("dev/../etc", "p", "c", gpu, "GPU-"+id2),                  // 1
		held("dev", strings.Repeat("a", 300), "c", gpu, "GPU-"+id2),    // 1
		held("dev", "", "c", gpu, "GPU-"+id2),                          // 1
		claimed("c", &podresources.ClaimResource{DriverName: "no dr"}), // 1
		held("dev", "last", "c", gpu, "GPU-"+id2),
	)
	c := clientOf(t, k.start(), func(c *Config) { c.Poll = time.Hour })
	until(t, "it is read", func() bool { return !c.Holdings().Read.IsZero() })
	if got, want := who(c.Holdings()), []string{"dev/last/c UUID GPU-" + id2, "dev/good/c UUID GPU-" + id1}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := c.Counts().Rejected; n != 11 {
		t.Errorf("rejected %d, want 11", n)
	}
}

// Nothing that is wrong between here and the kubelet loses what was known, and each thing has its reason.
func TestKubeletTrouble(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of waiting")
	}
	k := newFakeKubelet(t)
	k.holds(held("dev", "a", "c", gpu, "GPU-"+id1))
	c := clientOf(t, k, func(c *Config) { c.Timeout = 3 * time.Second }) // the fake needs a while for 64 MiB
	is := func(r Reason) {
		t.Helper()
		until(t, "the reason is "+string(r), func() bool { return c.Holdings().Reason == r })
		if r != "" && c.Holdings().Err == "" {
			t.Errorf("%s has no words to it", r)
		}
	}
	is(Missing)
	if len(c.Holdings().All()) != 0 || !c.Holdings().Read.IsZero() {
		t.Errorf("known before it was told: %+v", c.Holdings())
	}
	k.start()
	is("")
	k.hangs()
	is(Hanging)
	k.answers(func(context.Context) (*podresources.ListPodResourcesResponse, error) {
		return nil, status.Error(codes.ResourceExhausted, "rejected by rate limit")
	})
	is(RateLimited)
	big := held("dev", "big", "c", gpu, strings.Repeat("x", 64<<20))
	k.holds(big)
	is(TooLarge)
	if n := k.connections.Load(); n != 1 {
		t.Errorf("%d connections to a kubelet that was there all the time", n)
	}
	k.stop()
	is(Missing)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: k.socket})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	must(t, dead.Close())
	is(Refused)
	if got := who(c.Holdings()); len(got) != 1 {
		t.Errorf("the last known is lost: %q", got)
	}
	age := c.Holdings().Read
	must(t, os.Remove(k.socket))
	k.holds(held("dev", "b", "c", gpu, "GPU-"+id1))
	k.start()
	is("")
	if got := who(c.Holdings()); got[0] != "dev/b/c UUID GPU-"+id1 || !c.Holdings().Read.After(age) {
		t.Errorf("after it came back: %q", got)
	}
	failures := c.Counts().Failures[PodResources]
	for _, r := range []Reason{Missing, Hanging, RateLimited, TooLarge, Refused} {
		if failures[r] == 0 {
			t.Errorf("%s is not counted: %v", r, failures)
		}
	}
}

// A kubelet that accepts and never speaks does not hold anybody up.
func TestMute(t *testing.T) {
	k := newFakeKubelet(t)
	l, err := net.Listen("unix", k.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, l.Close()) })
	c := clientOf(t, k)
	until(t, "it is known to hang", func() bool { return c.Holdings().Reason == Hanging })
}

// A kubelet that hangs is left for the one that has made the socket anew, and that one is asked again which
// devices there are.
func TestReplacedWhileHanging(t *testing.T) {
	k := newFakeKubelet(t)
	k.offers = offers(gpu, "GPU-"+id1+"::0")
	k.holds(held("dev", "a", "c", gpu, "GPU-"+id1+"::0"))
	c := clientOf(t, k.start())
	until(t, "it is read", func() bool { return len(c.Holdings().All()) == 1 })
	k.hangs()
	until(t, "it hangs", func() bool { return c.Holdings().Reason == Hanging })
	must(t, os.Rename(k.socket, k.socket+".old")) // the old one lives on
	next := newFakeKubelet(t)
	next.socket = k.socket
	next.offers = offers(gpu, "GPU-"+id1+"::0", "GPU-"+id1+"::1")
	next.holds(held("dev", "b", "c", gpu, "GPU-"+id1+"::0"))
	next.start()
	until(t, "the new one tells", func() bool { h := c.Holdings(); return h.Reason == "" && h.All()[0].Pod == "b" })
	if n := c.Holdings().All()[0].Replicas; n != 2 {
		t.Errorf("%d replicas", n)
	}
	if n := c.Counts().Connections; n != 2 {
		t.Errorf("%d connections", n)
	}
}

// However often something asks for a poll, one question is open at a time, on one connection.
func TestOneAtATime(t *testing.T) {
	k := newFakeKubelet(t)
	k.answers(func(context.Context) (*podresources.ListPodResourcesResponse, error) {
		time.Sleep(time.Millisecond)
		return &podresources.ListPodResourcesResponse{}, nil
	})
	c := clientOf(t, k.start(), func(c *Config) { c.Poll = time.Millisecond })
	for k.lists.Load() < 100 {
		nudge(c.poller.hint)
		runtime.Gosched()
	}
	if k.most.Load() != 1 || k.connections.Load() != 1 {
		t.Errorf("%d questions at once on %d connections", k.most.Load(), k.connections.Load())
	}
}

// 64 MiB are refused at their first bytes, not read.
func TestTooLargeIsNotRead(t *testing.T) {
	k := newFakeKubelet(t)
	k.holds(held("dev", "big", "c", gpu, strings.Repeat("x", 64<<20)))
	k.start()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := clientOf(t, k, func(c *Config) { c.Poll, c.Timeout = time.Hour, 15*time.Second })
	until(t, "it is too large", func() bool { return c.Holdings().Reason == TooLarge })
	runtime.ReadMemStats(&after)
	// The fake is in the same process: what it encodes and sends is counted too, and is about twice the answer.
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4*64<<20 {
		t.Errorf("%d MiB were allocated", grown>>20)
	}
	if p := c.poller.pause(TooLarge); p < time.Hour/2 {
		t.Errorf("the next try is after %s", p)
	}
}

// Pauses grow, and never to less often than what was asked for needs.
func TestPause(t *testing.T) {
	p := &poller{every: 5 * time.Second}
	for _, c := range []struct {
		fails int
		why   Reason
		most  time.Duration
	}{{0, Hanging, 5 * time.Second}, {1, Hanging, 10 * time.Second}, {9, Hanging, longestPause}, {1000, Hanging, longestPause}, {9, TooLarge, largePause}} {
		p.fails = c.fails
		for range 100 {
			if got := p.pause(c.why); got < c.most/2 || got > c.most {
				t.Errorf("after %d failures: %s, want %s to %s", c.fails, got, c.most/2, c.most)
			}
		}
	}
}

// A pod that comes, ends or goes has the kubelet asked at once, and not at the next poll: what DRA gives
// is not in the checkpoint. A label that changes does not.
func TestPodsStir(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of waiting")
	}
	k := newFakeKubelet(t)
	k.offers = offers(gpu)
	k.holds()
	c := clientOf(t, k.start(), func(cfg *Config) { cfg.Poll = time.Hour })
	until(t, "it is read", func() bool { return !c.Holdings().Read.IsZero() })
	pod := &Pod{Namespace: "ml", Name: "a", UID: id1}
	for _, step := range []struct {
		what   string
		change func()
		asked  bool
	}{
		{"a pod comes", func() { c.pods.set(pod) }, true},
		{"its labels change", func() { c.pods.set(&Pod{Namespace: "ml", Name: "a", UID: id1, Queue: "q"}) }, false},
		{"it ends", func() { c.pods.set(&Pod{Namespace: "ml", Name: "a", UID: id1, Phase: "Succeeded"}) }, true},
		{"it goes", func() { c.pods.remove("ml", "a", id1) }, true},
		{"all are told anew", func() { c.pods.replace([]*Pod{pod}, c.healths[0]) }, true},
		{"and again", func() { c.pods.replace([]*Pod{pod}, c.healths[0]) }, false},
		{"there is none", func() { c.pods.replace(nil, c.healths[0]) }, true},
	} {
		before := c.Counts().Asked[PodResources]
		step.change()
		if !step.asked {
			if c.pods.stirred.Load() {
				t.Errorf("%s: the kubelet is asked", step.what)
			}
			continue
		}
		until(t, step.what+", and the kubelet is asked", func() bool { return c.Counts().Asked[PodResources] > before })
	}
}
