package kubernetes

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	device "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// plugin is a device plugin that gives away ids of one resource, in the order the test wants.
type plugin struct {
	device.UnimplementedDevicePluginServer
	resource string
	ids      []string
	ended    chan struct{}

	mu   sync.Mutex
	next []string // those to prefer
}

// startPlugin serves one, and registers it whenever a kubelet starts.
func startPlugin(t *testing.T, resource string, ids ...string) *plugin {
	p := &plugin{resource: resource, ids: ids, ended: make(chan struct{})}
	t.Cleanup(func() { close(p.ended) })
	go func() {
		var born time.Time
		for {
			if info, err := os.Stat(device.KubeletSocket); err == nil && !info.ModTime().Equal(born) {
				if err := p.serve(t.Context()); err == nil {
					born = info.ModTime()
				}
			}
			select {
			case <-p.ended:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return p
}

// serve listens anew, as the kubelet removes all sockets when it starts, and registers.
func (p *plugin) serve(ctx context.Context) error {
	name := fmt.Sprintf("%x.sock", p.resource)
	socket := filepath.Join(device.DevicePluginPath, name)
	if err := os.RemoveAll(socket); err != nil {
		return err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	device.RegisterDevicePluginServer(server, p)
	go func() { _ = server.Serve(l) }()
	go func() { <-p.ended; server.Stop() }()
	line, err := grpc.NewClient("unix:"+device.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer line.Close() //nolint:errcheck // it was asked once
	_, err = device.NewRegistrationClient(line).Register(ctx, &device.RegisterRequest{
		Version: device.Version, Endpoint: name, ResourceName: p.resource,
		Options: &device.DevicePluginOptions{GetPreferredAllocationAvailable: true},
	})
	return err
}

// prefer says which ids the next container is to be given.
func (p *plugin) prefer(ids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = ids
}

// GetDevicePluginOptions implements device.DevicePluginServer.
func (p *plugin) GetDevicePluginOptions(context.Context, *device.Empty) (*device.DevicePluginOptions, error) {
	return &device.DevicePluginOptions{GetPreferredAllocationAvailable: true}, nil
}

// ListAndWatch tells all ids once: they never change.
func (p *plugin) ListAndWatch(_ *device.Empty, stream grpc.ServerStreamingServer[device.ListAndWatchResponse]) error {
	var all device.ListAndWatchResponse
	for _, id := range p.ids {
		all.Devices = append(all.Devices, &device.Device{ID: id, Health: device.Healthy})
	}
	if err := stream.Send(&all); err != nil {
		return err
	}
	select {
	case <-stream.Context().Done():
	case <-p.ended:
	}
	return nil
}

// GetPreferredAllocation gives what the test wants, as far as it is free.
func (p *plugin) GetPreferredAllocation(_ context.Context, r *device.PreferredAllocationRequest) (*device.PreferredAllocationResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer := new(device.PreferredAllocationResponse)
	for _, c := range r.GetContainerRequests() {
		var ids []string
		for _, id := range append(slices.Clone(p.next), c.GetAvailableDeviceIDs()...) {
			if len(ids) < int(c.GetAllocationSize()) && slices.Contains(c.GetAvailableDeviceIDs(), id) && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		answer.ContainerResponses = append(answer.ContainerResponses, &device.ContainerPreferredAllocationResponse{DeviceIDs: ids})
	}
	return answer, nil
}

// Allocate gives a container nothing but the ids.
func (p *plugin) Allocate(_ context.Context, r *device.AllocateRequest) (*device.AllocateResponse, error) {
	answer := new(device.AllocateResponse)
	for range r.GetContainerRequests() {
		answer.ContainerResponses = append(answer.ContainerResponses, &device.ContainerAllocateResponse{})
	}
	return answer, nil
}
