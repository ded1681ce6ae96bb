package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// draDriver is the name of NVIDIA's, whose devices' names and attributes ours has.
const draDriver = "gpu.nvidia.com"

// dra is a DRA driver that prepares what it is asked to, and does nothing for it.
type dra struct {
	mu     sync.Mutex
	failed error // of what goes on behind
}

// startDRA publishes devices, by the UUID of each, and has the kubelet know the driver.
func (c *cluster) startDRA(t *testing.T, devices map[string]string) *dra {
	d := new(dra)
	if err := os.MkdirAll(kubeletDir+"/plugins/"+draDriver, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(cancel)
	plugin, err := kubeletplugin.Start(ctx, d, kubeletplugin.DriverName(draDriver), kubeletplugin.NodeName(nodeName), kubeletplugin.KubeClient(c.admin))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		plugin.Stop()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.failed != nil {
			t.Error(d.failed)
		}
	})
	var slice resourceslice.Slice
	for name, uuid := range devices {
		kind := "gpu"
		slice.Devices = append(slice.Devices, resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"uuid": {StringValue: &uuid}, "type": {StringValue: &kind},
		}})
	}
	pools := map[string]resourceslice.Pool{nodeName: {Slices: []resourceslice.Slice{slice}}}
	if err := plugin.PublishResources(ctx, resourceslice.DriverResources{Pools: pools}); err != nil {
		t.Fatal(err)
	}
	return d
}

// PrepareResourceClaims implements kubeletplugin.DRAPlugin.
func (*dra) PrepareResourceClaims(_ context.Context, claims []*resourcev1.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	all := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		var is kubeletplugin.PrepareResult
		for _, given := range claim.Status.Allocation.Devices.Results {
			is.Devices = append(is.Devices, kubeletplugin.Device{Requests: []string{given.Request}, PoolName: given.Pool, DeviceName: given.Device})
		}
		all[claim.UID] = is
	}
	return all, nil
}

// UnprepareResourceClaims implements kubeletplugin.DRAPlugin.
func (*dra) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	all := map[types.UID]error{}
	for _, claim := range claims {
		all[claim.UID] = nil
	}
	return all, nil
}

// WatchHealthStatus implements kubeletplugin.DRAPlugin.
func (*dra) WatchHealthStatus(context.Context, chan<- kubeletplugin.DeviceHealthReport) error {
	return kubeletplugin.ErrHealthNotSupported
}

// HandleError implements kubeletplugin.DRAPlugin. An API server that is away for a while is no fault.
func (d *dra) HandleError(_ context.Context, err error, what string) {
	if errors.Is(err, kubeletplugin.ErrRecoverable) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = errors.Join(d.failed, fmt.Errorf("%s: %w", what, err))
}

// claim makes a claim of a device, has it given as a scheduler would, and runs a pod that has it.
func (c *cluster) claim(t *testing.T, p *corev1.Pod, device string) *corev1.Pod {
	t.Helper()
	ctx, claims := t.Context(), c.admin.ResourceV1().ResourceClaims(p.Namespace)
	made, err := claims.Create(ctx, &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
			{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: draDriver, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &made.Name}}
	p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	return c.runWith(t, p, func(p *corev1.Pod) error {
		made.Status = resourcev1.ResourceClaimStatus{
			Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
				Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: draDriver, Pool: nodeName, Device: device}},
			}},
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: p.Name, UID: p.UID}},
		}
		_, err := claims.UpdateStatus(ctx, made, metav1.UpdateOptions{})
		return err
	})
}

// claimed tells two devices whose names say different things of them: one what it is, one nothing.
func (r *room) claimed(t *testing.T) {
	_, err := r.admin.ResourceV1().DeviceClasses().Create(t.Context(), &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: draDriver}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.startDRA(t, map[string]string{"gpu-3": uuid(3), "fast": uuid(4)})
	r.claim(t, newPod("ml", "by-name", "sleep"), "gpu-3")
	r.claim(t, newPod("ml", "by-slice", "sleep"), "fast")
	r.exporter.shows(t,
		`gpu_owner_info{gpu_uuid="`+uuid(3)+`",k8s_pod_name="by-name",k8s_container_name="main",gpu_sharing="exclusive"} == 1`,
		`gpu_owner_info{gpu_uuid="`+uuid(4)+`",k8s_pod_name="by-slice",k8s_container_name="main",gpu_sharing="exclusive"} == 1`,
		`gpu_power_draw_watts{gpu_index="3",k8s_pod_name="by-name"} > 0`, `gpu_power_draw_watts{gpu_index="4",k8s_pod_name="by-slice"} > 0`,
	)
}
