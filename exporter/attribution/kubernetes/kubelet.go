package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// kubeletPods reads /pods of the kubelet's HTTPS port: no load on the API server, but a right to
// nodes/pods, which kubelets since 1.33 know; nodes/proxy works as well, and lets its bearer run commands
// in any pod. The answer holds whole pods with what is secret in their environment, which is not kept.
type kubeletPods struct {
	endpoint Endpoint
	within   time.Duration
	every    time.Duration // between two lists, and up to half of it more
	apart    time.Duration // at least, also when a pod is missed
	reader   *reader
	table    *table
	counts   *counts
	health   *health
	missed   <-chan struct{} // a pod holds devices and is not in the table

	client *http.Client // once there is one
	url    string
}

// kubeletEvery is how often the kubelet is asked, seconds apart from what else asks it.
const kubeletEvery = 15 * time.Second

func (k *kubeletPods) state() *health { return k.health }

// run implements provider.
func (k *kubeletPods) run(ctx context.Context) {
	told := false
	for tries := 0; ; tries++ {
		err := k.list(ctx)
		if ctx.Err() != nil {
			return
		}
		pause, missed := k.every+rand.N(k.every/2), k.missed
		if err != nil {
			reason := why(err)
			k.health.ill(reason, err)
			if !told || reason == Denied || reason == Unsupported || reason == Missing {
				return
			}
			pause, missed = max(min(k.every<<min(tries, 10), 10*k.every), retryAfter(err)), nil
		} else {
			told, tries = true, 0
		}
		if !sleep(ctx, k.apart) {
			return
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-missed:
		case <-ctx.Done():
			t.Stop()
			return
		}
		t.Stop()
	}
}

// list takes in all pods.
func (k *kubeletPods) list(ctx context.Context) error {
	if k.client == nil {
		client, url, err := k.endpoint.httpClient(func() { k.counts.ask(KubeletHTTPS) })
		if err != nil {
			k.counts.ask(KubeletHTTPS) // it is in use, though no request can be sent
			return err
		}
		k.client, k.url = client, url+"/pods"
	}
	ctx, cancel := context.WithTimeout(ctx, k.within)
	defer cancel()
	body, err := get(ctx, k.client, k.url)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it was only read
	var all []*Pod
	if err := items(body, func(raw json.RawMessage) {
		var p jsonPod
		if json.Unmarshal(raw, &p) != nil {
			k.counts.rejected.Add(1)
			return
		}
		if pod, err := k.reader.pod(p.record()); err == nil && len(all) <= mostPods {
			all = append(all, pod)
		}
	}); err != nil {
		return err
	}
	if len(all) > mostPods {
		return fmt.Errorf("kubernetes: %s: %w: %d pods", k.url, errTooLarge, mostPods)
	}
	k.table.replace(all, k.health)
	k.health.well()
	return nil
}

// jsonPod is what is read of a pod in JSON.
type jsonPod struct {
	Metadata struct {
		Namespace, Name, UID string
		Labels, Annotations  map[string]string
		CreationTimestamp    time.Time
		OwnerReferences      []reference
	}
	Spec struct {
		Containers, InitContainers []struct{ Name, Image, RestartPolicy string }
	}
	Status struct {
		Phase                                    string
		ContainerStatuses, InitContainerStatuses []struct {
			Name, ContainerID string
			State             struct{ Terminated *struct{} }
		}
	}
}

func (p *jsonPod) record() *record {
	m := &p.Metadata
	r := &record{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, Labels: m.Labels, Annotations: m.Annotations,
		Owners: m.OwnerReferences, Created: m.CreationTimestamp, Phase: p.Status.Phase,
	}
	state := map[string]Container{}
	for _, s := range append(p.Status.ContainerStatuses, p.Status.InitContainerStatuses...) {
		state[s.Name] = Container{ID: s.ContainerID, Ended: s.State.Terminated != nil}
	}
	for _, c := range p.Spec.Containers {
		r.Containers = append(r.Containers, Container{Name: c.Name, Image: c.Image})
	}
	for _, c := range p.Spec.InitContainers { // one that is always restarted runs beside the others
		r.Containers = append(r.Containers, Container{Name: c.Name, Image: c.Image, Init: c.RestartPolicy != "Always"})
	}
	for i := range r.Containers {
		c := &r.Containers[i]
		c.ID, c.Ended = state[c.Name].ID, state[c.Name].Ended
	}
	return r
}
