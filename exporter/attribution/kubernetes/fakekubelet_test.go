package kubernetes

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	pods "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// fakeKubelet is a real gRPC server on a socket, which behaves as it is told.
type fakeKubelet struct {
	podresources.UnimplementedPodResourcesListerServer
	pods.UnimplementedPodsServer
	t      *testing.T
	socket string
	server *grpc.Server

	connections atomic.Int64 // accepted, over all starts
	lists       atomic.Int64
	open, most  atomic.Int64 // lists at once, and the most there were

	mu       sync.Mutex
	list     func(context.Context) (*podresources.ListPodResourcesResponse, error)
	offers   func() (*podresources.AllocatableResourcesResponse, error) // nil: a kubelet that does not know the question
	podList  func() (*pods.ListPodsResponse, error)
	watchers func(grpc.ServerStreamingServer[pods.WatchPodsEvent]) error
}

// newFakeKubelet is not started, and lists no pods.
func newFakeKubelet(t *testing.T) *fakeKubelet {
	k := &fakeKubelet{t: t, socket: filepath.Join(shortDir(t), "k.sock")}
	k.holds()
	t.Cleanup(k.stop)
	return k
}

// shortDir is a directory whose path leaves room for a socket's name, of which 107 bytes are allowed.
func shortDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "k8s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// start listens, on a new socket.
func (k *fakeKubelet) start() *fakeKubelet {
	k.t.Helper()
	l, err := net.Listen("unix", k.socket)
	if err != nil {
		k.t.Fatal(err)
	}
	k.server = grpc.NewServer(grpc.MaxSendMsgSize(256 << 20))
	if k.offers == nil { // an old one: List is all it has
		full := podresources.PodResourcesLister_ServiceDesc
		full.Methods = full.Methods[:1]
		k.server.RegisterService(&full, k)
	} else {
		podresources.RegisterPodResourcesListerServer(k.server, k)
	}
	if k.podList != nil {
		pods.RegisterPodsServer(k.server, k)
	}
	server := k.server
	go func() {
		if err := server.Serve(counted{l, &k.connections}); err != nil {
			k.t.Error(err)
		}
	}()
	return k
}

// stop ends it, and its socket.
func (k *fakeKubelet) stop() {
	if k.server != nil {
		k.server.Stop()
		k.server = nil
	}
}

type counted struct {
	net.Listener
	n *atomic.Int64
}

func (c counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.n.Add(1)
	}
	return conn, err
}

// holds sets what is listed from now on.
func (k *fakeKubelet) holds(all ...*podresources.PodResources) {
	k.answers(func(context.Context) (*podresources.ListPodResourcesResponse, error) {
		return &podresources.ListPodResourcesResponse{PodResources: all}, nil
	})
}

// answers sets how List is answered from now on.
func (k *fakeKubelet) answers(f func(context.Context) (*podresources.ListPodResourcesResponse, error)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = f
}

// hangs lets List wait for whoever asks to give up.
func (k *fakeKubelet) hangs() {
	k.answers(func(ctx context.Context) (*podresources.ListPodResourcesResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
}

func (k *fakeKubelet) List(ctx context.Context, _ *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	k.lists.Add(1)
	if n := k.open.Add(1); n > k.most.Load() {
		k.most.Store(n)
	}
	defer k.open.Add(-1)
	k.mu.Lock()
	f := k.list
	k.mu.Unlock()
	return f(ctx)
}

func (k *fakeKubelet) GetAllocatableResources(context.Context, *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	return k.offers()
}

func (k *fakeKubelet) ListPods(context.Context, *pods.ListPodsRequest) (*pods.ListPodsResponse, error) {
	k.mu.Lock()
	f := k.podList
	k.mu.Unlock()
	return f()
}

func (k *fakeKubelet) WatchPods(_ *pods.WatchPodsRequest, s grpc.ServerStreamingServer[pods.WatchPodsEvent]) error {
	if k.watchers == nil {
		return k.UnimplementedPodsServer.WatchPods(nil, s)
	}
	return k.watchers(s)
}

// held is a pod of one container that holds ids of a resource.
func held(namespace, pod, container, resource string, ids ...string) *podresources.PodResources {
	return &podresources.PodResources{Namespace: namespace, Name: pod, Containers: []*podresources.ContainerResources{{
		Name: container, Devices: []*podresources.ContainerDevices{{ResourceName: resource, DeviceIds: ids}},
	}}}
}

// claimed is a pod of one container that holds a DRA device.
func claimed(pod string, r *podresources.ClaimResource) *podresources.PodResources {
	return &podresources.PodResources{Namespace: "ml", Name: pod, Containers: []*podresources.ContainerResources{{
		Name:             "main",
		DynamicResources: []*podresources.DynamicResource{{ClaimNamespace: "ml", ClaimName: "claim-" + pod, ClaimResources: []*podresources.ClaimResource{r}}},
	}}}
}

// clientOf runs a client of the fake that polls often and asks nobody else, unless told otherwise.
func clientOf(t *testing.T, k *fakeKubelet, change ...func(*Config)) *Client {
	t.Helper()
	cfg := Config{
		Socket: k.socket, Checkpoint: filepath.Join(filepath.Dir(k.socket), "checkpoint"),
		Poll: 5 * time.Millisecond, Timeout: 300 * time.Millisecond, Jitter: -1, Metadata: MetadataNone,
	}
	for _, f := range change {
		f(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	runs(t, c)
	return c
}

// runs lets a client run until the test ends.
func runs(t *testing.T, c *Client) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Error("Run does not end with its context")
		}
	})
}

// until waits for something to hold.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("it never came about that %s", what)
}

// who are the pods that hold, with what.
func who(h *Holdings) (out []string) {
	for _, x := range h.All() {
		out = append(out, x.Namespace+"/"+x.Pod+"/"+x.Container+" "+x.Ref.Key.String())
	}
	return out
}
