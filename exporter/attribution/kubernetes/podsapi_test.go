package kubernetes

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	core "k8s.io/api/core/v1"
	pods "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

func marshal(t *testing.T, p *core.Pod) []byte {
	t.Helper()
	raw, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// lists sets what the Pods API answers from now on.
func (k *fakeKubelet) listsPods(f func() (*pods.ListPodsResponse, error)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.podList = f
}

func podsAre(raw ...[]byte) func() (*pods.ListPodsResponse, error) {
	return func() (*pods.ListPodsResponse, error) { return &pods.ListPodsResponse{Pods: raw}, nil }
}

// kubeletTells configures the Pods API of the fake, and labels.
func kubeletTells(k *fakeKubelet) func(*Config) {
	return func(c *Config) {
		c.Metadata, c.KubeletPods = MetadataKubelet, []string{filepath.Join(filepath.Dir(k.socket), "absent"), k.socket}
		c.PodLabels, c.PodAnnotations = []string{"team"}, []string{"note"}
	}
}

func TestPodsAPI(t *testing.T) {
	k := newFakeKubelet(t)
	events := make(chan *pods.WatchPodsEvent)
	k.podList = podsAre(marshal(t, corePod("web")), []byte("no pod"))
	k.watchers = func(s grpc.ServerStreamingServer[pods.WatchPodsEvent]) error {
		for {
			select {
			case e := <-events:
				if err := s.Send(e); err != nil {
					return err
				}
			case <-s.Context().Done():
				return nil
			}
		}
	}
	c := clientOf(t, k.start(), kubeletTells(k))
	until(t, "the pod is known", func() bool { _, ok := c.Pod("ml", "web"); return ok })
	p, _ := c.PodByUID("uid-web")
	sorted(&p)
	if want := podOfCore("web"); p.Workload != want.Workload || p.Labels["team"] != "a" || len(p.Labels) != 1 || p.Phase != "Running" {
		t.Errorf("got %+v", p)
	}
	if p, c, ok := c.PodByContainer(cid); !ok || p.Name != "web" || c.Name != "main" || c.Image != "img/main:1" {
		t.Errorf("by container: %v, %+v", ok, c)
	}
	if by, n, h := c.Pods(); by != KubeletPods || n != 1 || h.Reason != "" {
		t.Errorf("%s, %d, %+v", by, n, h)
	}
	events <- &pods.WatchPodsEvent{Type: pods.EventType_ADDED, Pod: marshal(t, corePod("new"))}
	until(t, "an added pod is known", func() bool { _, ok := c.Pod("ml", "new"); return ok })
	done := corePod("new")
	done.Status.Phase = core.PodSucceeded
	events <- &pods.WatchPodsEvent{Type: pods.EventType_MODIFIED, Pod: marshal(t, done)}
	until(t, "a pod that has ended is not", func() bool { _, ok := c.Pod("ml", "new"); return !ok })
	bare := &core.Pod{}
	bare.Namespace, bare.Name, bare.UID = "ml", "web", "uid-web" // no more is promised
	events <- &pods.WatchPodsEvent{Type: pods.EventType_INITIAL_SYNC_COMPLETE}
	events <- &pods.WatchPodsEvent{Type: pods.EventType_MODIFIED, Pod: []byte("no pod")}
	events <- &pods.WatchPodsEvent{Type: pods.EventType_UNSPECIFIED}
	events <- &pods.WatchPodsEvent{Type: pods.EventType_DELETED, Pod: marshal(t, bare)}
	until(t, "a deleted pod is not", func() bool { _, ok := c.Pod("ml", "web"); return !ok })
	if n := c.Counts(); n.Events != 6 || n.Rejected != 3 {
		t.Errorf("%+v", n)
	}
}

// The end of the watch, and a kubelet that starts again, lose nothing.
func TestPodsAPIRestarts(t *testing.T) {
	k := newFakeKubelet(t)
	k.podList = podsAre(marshal(t, corePod("web")))
	var watches atomic.Int64
	k.watchers = func(s grpc.ServerStreamingServer[pods.WatchPodsEvent]) error {
		if watches.Add(1) == 1 {
			return nil // ends at once
		}
		<-s.Context().Done()
		return nil
	}
	c := clientOf(t, k.start(), kubeletTells(k))
	until(t, "the watch is begun again", func() bool { return watches.Load() >= 2 })
	if _, ok := c.Pod("ml", "web"); !ok {
		t.Error("the pod is lost with the watch")
	}
	k.stop()
	until(t, "the kubelet is gone", func() bool { return c.Sources()[KubeletPods].Reason == Missing })
	if _, ok := c.Pod("ml", "web"); !ok {
		t.Error("the pod is lost with the kubelet")
	}
	if by, _, h := c.Pods(); by != KubeletPods || h.Reason != Missing || h.Read.IsZero() {
		t.Errorf("who told is forgotten: %s, %+v", by, h)
	}
}

// A kubelet that is starting is asked again; one without the question is not.
func TestPodsAPINotYet(t *testing.T) {
	k := newFakeKubelet(t)
	k.podList = func() (*pods.ListPodsResponse, error) {
		return nil, status.Error(codes.FailedPrecondition, "the kubelet is starting")
	}
	c := clientOf(t, k.start(), kubeletTells(k))
	until(t, "it is known to start", func() bool { return c.Sources()[KubeletPods].Reason == Starting })
	k.listsPods(podsAre(marshal(t, corePod("web"))))
	until(t, "the pod is known, from lists alone", func() bool { _, ok := c.Pod("ml", "web"); return ok })

	old := newFakeKubelet(t)
	c = clientOf(t, old.start(), kubeletTells(old))
	until(t, "it is known not to tell", func() bool { return c.Sources()[KubeletPods].Reason == Unsupported })
	if by, _, h := c.Pods(); by != "" || h.Reason != Unsupported {
		t.Errorf("%s, %+v", by, h)
	}
}

// fakeProvider tells when it is let, and until it is stopped.
type fakeProvider struct {
	h     *health
	table *table
	works atomic.Bool
	runs  atomic.Int64
	stop  chan struct{}
}

func (f *fakeProvider) state() *health { return f.h }

func (f *fakeProvider) run(ctx context.Context) {
	f.runs.Add(1)
	if !f.works.Load() {
		f.h.ill(Missing, os.ErrNotExist)
		return
	}
	f.table.replace([]*Pod{pod("from-"+string(f.h.source), "u", "Running")}, f.h)
	f.h.well()
	select {
	case <-f.stop:
		f.h.ill(Denied, os.ErrPermission)
	case <-ctx.Done():
	}
}

// The first provider that works tells; when it no longer does, the first is tried again first.
func TestChooser(t *testing.T) {
	cfg := Config{}
	if err := cfg.complete(); err != nil {
		t.Fatal(err)
	}
	n := &counts{}
	tab := newTable(n)
	make1 := func(s Source) *fakeProvider {
		return &fakeProvider{h: newHealth(s, n, time.Now, cfg.Logger), table: tab, stop: make(chan struct{})}
	}
	first, second := make1(KubeletPods), make1(APIServer)
	var pauses atomic.Int64
	c := &chooser{providers: []provider{first, second}, log: cfg.Logger, pause: func(int) time.Duration { pauses.Add(1); return time.Millisecond }}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); c.run(ctx) }()
	until(t, "all are tried again and again", func() bool { return pauses.Load() > 3 })
	second.works.Store(true)
	until(t, "the second tells", func() bool { _, ok := tab.named("ns", "from-api"); return ok })
	tries := second.runs.Load()
	first.works.Store(true)
	second.stop <- struct{}{}
	until(t, "the first tells", func() bool { _, ok := tab.named("ns", "from-pods"); return ok })
	if second.runs.Load() != tries {
		t.Error("the second was tried before the first")
	}
	cancel()
	<-ended
}
