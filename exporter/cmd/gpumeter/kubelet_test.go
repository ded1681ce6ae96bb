package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/gpumeter/gpumeter/exporter/attribution/kubernetes"
)

// kubelet answers on a socket who holds what. Its client asks all the time, and is answered once for
// each poll of the test.
type kubelet struct {
	podresources.UnimplementedPodResourcesListerServer
	*testing.T
	client *kubernetes.Client
	offers []*podresources.ContainerDevices

	asked chan struct{}
	tells chan []*podresources.PodResources
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
	k := &kubelet{T: t, offers: offers, asked: make(chan struct{}), tells: make(chan []*podresources.PodResources)}
	server := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(server, k)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	k.client, err = kubernetes.New(kubernetes.Config{
		Socket: filepath.Join(dir, "kubelet.sock"), Checkpoint: filepath.Join(dir, "checkpoint"),
		Metadata: kubernetes.MetadataNone, Poll: time.Millisecond, Timeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); k.client.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	<-k.asked
	return k
}

func (k *kubelet) List(ctx context.Context, _ *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	for asked := k.asked; ; asked = nil {
		select {
		case asked <- struct{}{}:
			continue
		case pods := <-k.tells:
			return &podresources.ListPodResourcesResponse{PodResources: pods}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (k *kubelet) GetAllocatableResources(context.Context, *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	return &podresources.AllocatableResourcesResponse{Devices: k.offers}, nil
}

// poll lets the client learn who holds what now: it has when it asks again.
func (k *kubelet) poll(pods []*podresources.PodResources) {
	k.tells <- pods
	<-k.asked
}

// givenTo is a pod that was given an id of a resource.
func givenTo(namespace, pod, resource, id string) *podresources.PodResources {
	return &podresources.PodResources{Namespace: namespace, Name: pod, Containers: []*podresources.ContainerResources{{
		Name: "main", Devices: []*podresources.ContainerDevices{{ResourceName: resource, DeviceIds: []string{id}}},
	}}}
}
