package budget

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const (
	gpus      = 8
	pods      = 100
	gpuPods   = 64 // pods that hold a GPU; each GPU is shared by 8 of them
	resource  = "nvidia.com/gpu"
	namespace = "team"
)

// kubelet serves the pod-resources API. Each call of replace ends the oldest pod and starts another
// in its place.
type kubelet struct {
	podresources.UnimplementedPodResourcesListerServer
	replaced atomic.Int64
	lists    atomic.Int64
}

// uuid is the UUID of the fake driver's GPU with this index.
func uuid(gpu int) string { return fmt.Sprintf("GPU-00000000-0000-4000-8000-%012d", gpu) }

// name is the name of the pod that has been in a place since a number of replacements.
func (k *kubelet) name(place int) string {
	generation := (int(k.replaced.Load()) + pods - 1 - place) / pods
	return fmt.Sprintf("worker-%02d-generation-%d", place, generation)
}

func (k *kubelet) replace() { k.replaced.Add(1) }

// List returns the 100 pods. Those in the first places hold a replica of a shared GPU.
func (k *kubelet) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	k.lists.Add(1)
	out := new(podresources.ListPodResourcesResponse)
	for place := range pods {
		container := &podresources.ContainerResources{Name: "main"}
		if place < gpuPods {
			id := fmt.Sprintf("%s::%d", uuid(place%gpus), place/gpus)
			container.Devices = []*podresources.ContainerDevices{{ResourceName: resource, DeviceIds: []string{id}}}
		}
		out.PodResources = append(out.PodResources, &podresources.PodResources{
			Name: k.name(place), Namespace: namespace, Containers: []*podresources.ContainerResources{container},
		})
	}
	return out, nil
}

// GetAllocatableResources returns the eight replicas of each GPU.
func (k *kubelet) GetAllocatableResources(context.Context, *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	devices := &podresources.ContainerDevices{ResourceName: resource}
	for i := range gpuPods {
		devices.DeviceIds = append(devices.DeviceIds, fmt.Sprintf("%s::%d", uuid(i%gpus), i/gpus))
	}
	return &podresources.AllocatableResourcesResponse{Devices: []*podresources.ContainerDevices{devices}}, nil
}

// serveKubelet serves k on the socket of a new kubelet directory and returns the directory.
func serveKubelet(t *testing.T, k *kubelet) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "k") // the path of a socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.MkdirAll(filepath.Join(dir, "pod-resources"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "pod-resources", "kubelet.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(server, k)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return dir
}
