package kubernetes

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// By itself the client asks the API server where the kubelet does not tell, and the kubelet once it does.
func TestAuto(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of waiting")
	}
	a, k := newFakeAPI(t), newFakeKubelet(t)
	a.tell("ADDED", meta("web"))
	k.podList = podsAre(marshal(t, corePod("web")))
	c := apiClient(t, a, kubeletTells(k), func(cfg *Config) { cfg.Metadata = MetadataAuto })
	until(t, "the API server tells", func() bool { by, _, _ := c.Pods(); return by == APIServer })
	if p, _ := c.Pod("ml", "web"); p.Phase != "" || len(p.Containers) != 0 || p.Workload.Name != "web" {
		t.Errorf("%+v", p)
	}
	if r := c.Sources()[KubeletPods].Reason; r != Missing {
		t.Errorf("the Pods API is %q", r)
	}
	k.start()
	until(t, "the kubelet tells", func() bool { by, _, _ := c.Pods(); return by == KubeletPods })
	until(t, "the API server is no longer watched", func() bool { return a.open.Load() == 0 })
	if p, _ := c.Pod("ml", "web"); p.Phase != "Running" {
		t.Errorf("%+v", p)
	}
	k.stop()
	until(t, "the API server tells again", func() bool { by, _, _ := c.Pods(); return by == APIServer })
}

func TestRespite(t *testing.T) {
	for tries, most := range map[int]time.Duration{0: shortestRest, 1: 2 * shortestRest, 100: longestRest} {
		for range 100 {
			if got := respite(tries); got < most/2 || got > most {
				t.Errorf("after %d tries: %s, want %s to %s", tries, got, most/2, most)
			}
		}
	}
}

func TestCallReasons(t *testing.T) {
	for code, want := range map[codes.Code]Reason{
		codes.DeadlineExceeded: Hanging, codes.PermissionDenied: Denied, codes.Unauthenticated: Denied, codes.FailedPrecondition: Starting,
		codes.Unimplemented: Unsupported, codes.Internal: Broken, codes.ResourceExhausted: RateLimited, codes.Unavailable: Unavailable, codes.Unknown: Unavailable,
	} {
		if got := whyCall(status.Error(code, "x"), nil); got != want {
			t.Errorf("%s: got %s, want %s", code, got, want)
		}
	}
}
