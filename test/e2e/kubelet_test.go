package e2e

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// kubelet answers on a socket who holds what, as files tell it at that time.
type kubelet struct {
	podresources.UnimplementedPodResourcesListerServer
	dir   string
	asked *asked
}

func (k kubelet) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	k.asked.kubelet.Add(1)
	text, err := os.ReadFile(filepath.Join(k.dir, "list.json"))
	if err != nil {
		return nil, err
	}
	out := new(podresources.ListPodResourcesResponse)
	return out, protojson.Unmarshal(text, out)
}

// GetAllocatableResources offers what another file tells.
func (k kubelet) GetAllocatableResources(context.Context, *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	k.asked.kubelet.Add(1)
	text, err := os.ReadFile(filepath.Join(k.dir, "offers.json"))
	if err != nil {
		return nil, err
	}
	out := new(podresources.AllocatableResourcesResponse)
	return out, protojson.Unmarshal(text, out)
}

// serveKubelet starts one: `kubelet DIR` answers with what is in DIR/list.json, offers what is in
// DIR/offers.json, has DIR/checkpoint.json, and puts its directory in $KUBELET. `kubelet stop` ends it,
// and `kubelet start` starts it again at the same place.
func serveKubelet(t *testing.T) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		was := ts.Value("kubelet").(*running)
		switch args[0] {
		case "stop":
			was.stop()
			return
		case "start":
			stop, err := listen(was.kubelet, was.at)
			ts.Check(err)
			was.stop = stop
			ts.Defer(stop)
			return
		}
		k := kubelet{dir: ts.MkAbs(args[0]), asked: ts.Value("asked").(*asked)}
		dir, stop, err := startKubelet(t, k)
		ts.Check(err)
		ts.Defer(stop)
		ts.Setenv("KUBELET", dir)
		*was = running{k, dir, stop}
	}
}

// running is the kubelet of a story.
type running struct {
	kubelet
	at   string
	stop func()
}

// startKubelet starts one that answers as the files of a directory say, and returns its own.
func startKubelet(t testing.TB, k kubelet) (dir string, stop func(), err error) {
	dir, err = os.MkdirTemp("", "kubelet") // a socket's path has at most 107 bytes
	if err != nil {
		return "", nil, err
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	err = errors.Join(
		os.MkdirAll(filepath.Join(dir, "pod-resources"), 0o700), os.MkdirAll(filepath.Join(dir, "device-plugins"), 0o700),
		os.Symlink(filepath.Join(k.dir, "checkpoint.json"), filepath.Join(dir, "device-plugins", "kubelet_internal_checkpoint")),
	)
	if err != nil {
		return "", nil, err
	}
	stop, err = listen(k, dir)
	return dir, stop, err
}

// listen serves one on the socket of its directory, which is made anew.
func listen(k kubelet, dir string) (stop func(), err error) {
	l, err := net.Listen("unix", filepath.Join(dir, "pod-resources", "kubelet.sock"))
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(server, k)
	go func() { _ = server.Serve(l) }()
	return server.Stop, nil
}
