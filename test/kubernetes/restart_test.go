package kubernetes

import (
	"context"
	"sync"
	"testing"
	"time"
)

// always looks at the page again and again, until the returned function is called, which says that
// every page had all that is expected.
func (e *exporter) always(t *testing.T, expected ...string) (until func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var looking sync.WaitGroup
	var failed error
	looks := 0
	looking.Go(func() {
		for ctx.Err() == nil && failed == nil {
			if err := e.lacks(ctx, expected...); ctx.Err() == nil {
				failed = err
				looks++
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	return func() {
		t.Helper()
		cancel()
		looking.Wait()
		if failed != nil {
			t.Errorf("at look %d the page was otherwise: %v", looks, failed)
		}
	}
}

// holds is what the page shows of a pod of a Job that has the first GPU; last, that no pod has another.
func holds(pod string) []string {
	return []string{
		"gpu_up == 1", `gpu_owner_info{gpu_uuid="` + uuid(0) + `",k8s_pod_name="` + pod + `",k8s_workload_kind="Job",k8s_workload_name="keeper"} == 1`,
		`gpu_power_draw_watts{gpu_index="0",k8s_pod_name="` + pod + `",k8s_workload_name="keeper"} > 0`,
		`!gpu_power_draw_watts{gpu_index!="0",k8s_pod_name!=""}`,
	}
}

// keeper holds the first GPU for a story.
func (r *room) keeper(t *testing.T, name string) []string {
	t.Helper()
	p := newPod("lab", name, "sleep", "nvidia.com/gpu")
	p.Labels = map[string]string{"batch.kubernetes.io/job-name": "keeper"}
	r.whole.prefer(uuid(0))
	r.run(t, p)
	r.exporter.shows(t, holds(name)...)
	return holds(name)
}

func (r *room) kubeletRestart(t *testing.T) {
	until := r.exporter.always(t, r.keeper(t, "stays")...)
	r.stopKubelet(t)
	time.Sleep(5 * time.Second)
	r.startKubelet(t)
	time.Sleep(15 * time.Second) // past the first answers of a kubelet that does not know all pods yet
	until()
	r.run(t, newPod("lab", "after", "sleep", "nvidia.com/gpu"))
	r.exporter.shows(t, `gpu_workload_allocated_time_seconds_total{gpu_uuid="`+uuid(1)+`",k8s_pod_name="after"}`)
}

// apiRestart has also the kubelet start again while there is no API server to tell it of its pods.
func (r *room) apiRestart(t *testing.T) {
	until := r.exporter.always(t, r.keeper(t, "outlives")...)
	r.api.kill(t)
	time.Sleep(5 * time.Second)
	r.stopKubelet(t)
	r.kubelet.start(t)
	time.Sleep(15 * time.Second)
	r.startAPI(t)
	r.awaitNode(t)
	until()
	p := newPod("lab", "later", "sleep", "nvidia.com/gpu")
	p.Labels = map[string]string{"batch.kubernetes.io/job-name": "new"}
	r.run(t, p)
	r.exporter.shows(t, `gpu_workload_allocated_time_seconds_total{gpu_uuid="`+uuid(1)+`",k8s_pod_name="later",k8s_workload_name="new"}`)
}

// kubeletHTTPS has another gpumeter that asks nobody but the kubelet.
func (r *room) kubeletHTTPS(t *testing.T) {
	expected := r.keeper(t, "by-https")
	e := r.serve(t, r.gpus, 9451, "--kubernetes.pod-metadata", "kubelet", "--kubernetes.kubelet-url", kubeletURL,
		"--kubernetes.kubelet-ca-file", kubeletCA, "--kubernetes.kubelet-token-file", r.token)
	e.shows(t, expected...)
}

// startPodsAPI has the kubelet tell what pods are on a socket of its own.
func (c *cluster) startPodsAPI(t *testing.T) {
	t.Helper()
	c.configure(t, true)
	c.stopKubelet(t)
	c.startKubelet(t)
}

// podsAPI has the kubelet tell what pods are on a socket: who asks for nothing else knows, and who
// watches at the API server ends that.
func (r *room) podsAPI(t *testing.T) {
	expected := r.keeper(t, "by-socket")
	r.startPodsAPI(t)
	e := r.serve(t, r.gpus, 9452, "--kubernetes.pod-metadata", "kubelet")
	e.shows(t, expected...)
	p := newPod("lab", "told", "sleep", "nvidia.com/gpu")
	p.Labels = map[string]string{"batch.kubernetes.io/job-name": "new"}
	r.run(t, p)
	expected = append(expected[:len(expected)-1], `gpu_workload_allocated_time_seconds_total{gpu_uuid="`+uuid(1)+`",k8s_pod_name="told",k8s_workload_name="new"}`)
	e.shows(t, expected...)
	watchesEnd(t)
	r.exporter.shows(t, expected...)
}
