package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/gpumeter/gpumeter/exporter/attribution/kubernetes"
)

// kubelet answers on a socket who holds what, and is asked by a client all the time.
type kubelet struct {
	podresources.UnimplementedPodResourcesListerServer
	*testing.T
	client *kubernetes.Client
	offers []*podresources.ContainerDevices

	mu    sync.Mutex
	asked int
	pods  []*podresources.PodResources
}

// startKubelet starts one that offers those devices, and its client.
func startKubelet(t *testing.T, offers []*podresources.ContainerDevices) *kubelet {
	dir, err := os.MkdirTemp("", "kubelet") // a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "kubelet.sock"))
	if err != nil {
		t.Fatal(err)
	}
	k := &kubelet{T: t, offers: offers}
	server := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(server, k)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	k.client, err = kubernetes.New(kubernetes.Config{
		Socket: filepath.Join(dir, "kubelet.sock"), Checkpoint: filepath.Join(dir, "checkpoint"),
		Metadata: kubernetes.MetadataNone, Poll: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); k.client.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return k
}

func (k *kubelet) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	return &podresources.ListPodResourcesResponse{PodResources: k.pods}, nil
}

func (k *kubelet) GetAllocatableResources(context.Context, *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	return &podresources.AllocatableResourcesResponse{Devices: k.offers}, nil
}

func (k *kubelet) questions() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked
}

// poll lets the client learn who holds what now.
func (k *kubelet) poll(pods []*podresources.PodResources) {
	k.Helper()
	k.mu.Lock()
	k.pods = pods
	from := k.asked
	k.mu.Unlock()
	// The answer to the first question after that is taken in before the second is put.
	for end := time.Now().Add(20 * time.Second); k.questions() < from+2; time.Sleep(200 * time.Microsecond) {
		if time.Now().After(end) {
			k.Fatal("the kubelet is not asked")
		}
	}
}

// givenTo is a pod that was given an id of a resource.
func givenTo(namespace, pod, resource, id string) *podresources.PodResources {
	return &podresources.PodResources{Namespace: namespace, Name: pod, Containers: []*podresources.ContainerResources{{
		Name: "main", Devices: []*podresources.ContainerDevices{{ResourceName: resource, DeviceIds: []string{id}}},
	}}}
}
