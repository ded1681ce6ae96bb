package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

const cid = "3f1c5b6d7e8f90123456789abcdef0123456789abcdef0123456789abcdef012"

// corePod is a pod as Kubernetes has it, with more than is read.
func corePod(name string) *core.Pod {
	always, yes := core.ContainerRestartPolicyAlways, true
	return &core.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ml", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "7", Generation: 3,
			CreationTimestamp: metav1.Unix(1795219200, 0),
			Labels:            map[string]string{"team": "a", "secret": "s", "pod-template-hash": "7c9f8b5d4", queueName: "gold"},
			Annotations:       map[string]string{"note": "line 1\nline 2"},
			OwnerReferences:   []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7c9f8b5d4", UID: "x", Controller: &yes, BlockOwnerDeletion: &yes}},
			Finalizers:        []string{"f"},
			ManagedFields:     []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1("{}")}},
		},
		Spec: core.PodSpec{
			NodeName: "node-1", RestartPolicy: core.RestartPolicyOnFailure,
			InitContainers: []core.Container{{Name: "fetch", Image: "img/fetch:1"}, {Name: "proxy", Image: "img/proxy:1", RestartPolicy: &always}},
			Containers: []core.Container{{Name: "main", Image: "img/main:1", Env: []core.EnvVar{{Name: "PASSWORD", Value: "hunter2"}},
				Command: []string{"x"}}, {Name: "waits", Image: "img/waits:1"}},
			Volumes: []core.Volume{{Name: "v"}},
		},
		Status: core.PodStatus{
			Phase: core.PodRunning, HostIP: "10.0.0.7",
			InitContainerStatuses: []core.ContainerStatus{{Name: "fetch", ContainerID: "containerd://" + strings.Repeat("a", 64), State: core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: 0}}}},
			ContainerStatuses: []core.ContainerStatus{{Name: "main", ContainerID: "containerd://" + cid, Image: "resolved", ImageID: "sha256:1", RestartCount: 2,
				State:                core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: metav1.Unix(5, 0)}},
				LastTerminationState: core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: 1, ContainerID: "containerd://old"}}}},
		},
	}
}

// podOfCore is what is to be known of it.
func podOfCore(name string) *Pod {
	deployment := Owner{"Deployment", "web", "apps"}
	return &Pod{
		Namespace: "ml", Name: name, UID: "uid-" + name, Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "line 1\nline 2"},
		Owners: []Owner{{"ReplicaSet", "web-7c9f8b5d4", "apps"}, deployment}, Workload: deployment, Queue: "gold", Phase: "Running",
		Shown:   metric.NewLabels(metric.Label{Name: "k8s_pod_annotation_note", Value: "line 1\nline 2"}, metric.Label{Name: "k8s_pod_label_team", Value: "a"}),
		Created: time.Unix(1795219200, 0),
		Containers: []Container{
			{Name: "fetch", ID: strings.Repeat("a", 64), Image: "img/fetch:1", Init: true, Ended: true}, {Name: "proxy", Image: "img/proxy:1"},
			{Name: "main", ID: cid, Image: "img/main:1"}, {Name: "waits", Image: "img/waits:1"},
		},
	}
}

func testReader() *reader {
	return &reader{labels: allowed{"team"}, annotations: allowed{"note"}, counts: &counts{}}
}

// Both encodings of a pod, as Kubernetes' own code writes them, give the same.
func TestEncodings(t *testing.T) {
	raw, err := corePod("web").Marshal()
	if err != nil {
		t.Fatal(err)
	}
	wire, err := decodePod(raw)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(corePod("web"))
	if err != nil {
		t.Fatal(err)
	}
	var doc jsonPod
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*record{"protobuf": wire, "JSON": doc.record()} {
		d := testReader()
		got, err := d.pod(r)
		if err != nil || d.counts.rejected.Load() != 0 {
			t.Fatalf("%s: %v, %d rejected", name, err, d.counts.rejected.Load())
		}
		want := podOfCore("web")
		if !got.Created.Equal(want.Created) {
			t.Errorf("%s: created %s", name, got.Created)
		}
		got.Created = want.Created
		sorted(got)
		sorted(want)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %+v\nwant %+v", name, got, want)
		}
	}
}

// sorted orders containers, which have no order of their own.
func sorted(p *Pod) {
	by := map[string]Container{}
	for _, c := range p.Containers {
		by[c.Name] = c
	}
	p.Containers = nil
	for _, name := range []string{"fetch", "proxy", "main", "waits"} {
		p.Containers = append(p.Containers, by[name])
	}
}

// What makes no sense in a pod costs itself.
func TestHostilePod(t *testing.T) {
	good := func() *record { return &record{Namespace: "ml", Name: "p", UID: "u"} }
	for name, c := range map[string]struct {
		change func(*record)
		broken uint64
		fails  bool
		right  func(*Pod) bool
	}{
		"nothing wrong": {func(*record) {}, 0, false, func(p *Pod) bool { return p.Workload == Owner{Kind: "Pod", Name: "p"} && p.Chain() == "" }},
		"name":          {func(r *record) { r.Name = "../../x" }, 1, true, nil},
		"long name":     {func(r *record) { r.Name = strings.Repeat("a", 1<<20) }, 1, true, nil},
		"namespace":     {func(r *record) { r.Namespace = "a.b" }, 1, true, nil},
		"UID":           {func(r *record) { r.UID = "a b" }, 1, true, nil},
		"label":         {func(r *record) { r.Labels = map[string]string{"team": "a\nb"} }, 1, false, func(p *Pod) bool { return p.Labels == nil }},
		"label off the list": {func(r *record) { r.Labels = map[string]string{"other": "a\nb"} }, 0, false,
			func(p *Pod) bool { return p.Labels == nil }},
		"annotation": {func(r *record) {
			r.Annotations = map[string]string{"note": strings.Repeat("x", longestNote+1)}
		}, 1, false, func(p *Pod) bool { return p.Annotations == nil }},
		"owner": {func(r *record) {
			r.Owners = []reference{{APIVersion: "v1", Kind: "A B", Name: "x"}}
		}, 1, false, func(p *Pod) bool { return p.Workload.Kind == "Pod" }},
		"owner from a label": {func(r *record) { r.Labels = map[string]string{"volcano.sh/job-name": "a\"b"} }, 1, false,
			func(p *Pod) bool { return p.Owners == nil }},
		"queue":     {func(r *record) { r.Labels = map[string]string{queueName: "a b"} }, 0, false, func(p *Pod) bool { return p.Queue == "" }},
		"hash":      {func(r *record) { r.Annotations = map[string]string{configHash: "a b"} }, 0, false, func(p *Pod) bool { return p.Hash == "" }},
		"phase":     {func(r *record) { r.Phase = "A\x00" }, 1, false, func(p *Pod) bool { return p.Phase == "" }},
		"container": {func(r *record) { r.Containers = []Container{{Name: "A"}, {Name: "ok"}} }, 1, false, func(p *Pod) bool { return len(p.Containers) == 1 }},
		"container's image": {func(r *record) { r.Containers = []Container{{Name: "ok", Image: "a\x01"}} }, 1, false,
			func(p *Pod) bool { return p.Containers[0].Image == "" }},
		"container's id": {func(r *record) { r.Containers = []Container{{Name: "ok", ID: "docker://short"}} }, 0, false,
			func(p *Pod) bool { return p.Containers[0].ID == "" }},
		"many containers": {func(r *record) {
			for range mostContainers + 3 {
				r.Containers = append(r.Containers, Container{Name: "c"})
			}
		}, 3, false, func(p *Pod) bool { return len(p.Containers) == mostContainers }},
	} {
		d, r := testReader(), good()
		c.change(r)
		p, err := d.pod(r)
		if (err != nil) != c.fails || d.counts.rejected.Load() != c.broken || err == nil && !c.right(p) {
			t.Errorf("%s: %.400s, %v, %d rejected", name, fmt.Sprintf("%+v", p), err, d.counts.rejected.Load())
		}
	}
}

func TestChainText(t *testing.T) {
	if got := podOfCore("web").Chain(); got != "ReplicaSet/web-7c9f8b5d4, Deployment/web" {
		t.Errorf("%q", got)
	}
}

// Whatever bytes come as a pod, they are read without a panic and what is believed of them is valid.
func FuzzDecodePod(f *testing.F) {
	raw, err := corePod("web").Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte{0x0a, 0x05, 0x0a, 0x03, 'a', 'b', 'c'})
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := decodePod(raw)
		if err != nil {
			return
		}
		var theirs core.Pod
		if theirs.Unmarshal(raw) == nil && theirs.Name != r.Name {
			t.Errorf("name %q, Kubernetes reads %q", r.Name, theirs.Name)
		}
		p, err := (&reader{labels: allowed{"*"}, annotations: allowed{"*"}, counts: &counts{}}).pod(r)
		if err == nil && (!isPodName(p.Name) || len(p.Labels) > mostKept) {
			t.Errorf("%+v", p)
		}
	})
}

func FuzzItems(f *testing.F) {
	f.Add(`{"kind":"items","apiVersion":"v1","items":[{"metadata":{"name":"a"}},7],"metadata":{}}`)
	f.Add(`{"items":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		var got []string
		err := items(strings.NewReader(text), func(raw json.RawMessage) {
			var p jsonPod
			if json.Unmarshal(raw, &p) == nil {
				p.record()
			}
			got = append(got, string(raw))
		})
		var whole map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &whole) != nil || err != nil {
			return
		}
		var list []json.RawMessage
		if json.Unmarshal(whole["items"], &list) == nil && strings.Count(text, "items") == 1 && len(list) != len(got) {
			t.Errorf("%d items, want %d", len(got), len(list))
		}
	})
}

func TestItems(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind":"PodList","items":[{"a":1},2],"metadata":{}}`:  `{"a":1} 2`,
		`{"kind":"items","metadata":{"items":[9]},"items":[1]}`: `1`,
		`{"items":null}`: ``, `{"items":[]}`: ``, `{}`: ``,
		`[1]`: `! `, ``: `! `, `{"items":[1,`: `! 1`, `{"items":7}`: `! `, `{"items":[1]`: `! 1`,
	} {
		var got []string
		err := items(strings.NewReader(text), func(raw json.RawMessage) { got = append(got, string(raw)) })
		s := strings.Join(got, " ")
		if err != nil {
			s = "! " + s
			if why(err) != Broken {
				t.Errorf("%s: reason %s", text, why(err))
			}
		}
		if s != want {
			t.Errorf("%s: got %q, want %q (%v)", text, s, want, err)
		}
	}
}

func TestPickLeavesTheSourceAlone(t *testing.T) {
	labels := map[string]string{"team": "a", "other": "b"}
	before := maps.Clone(labels)
	kept, _ := allowed{"*"}.pick(labels, isLabel)
	kept["team"] = "changed"
	if !maps.Equal(labels, before) {
		t.Error("what is kept is not a copy")
	}
}
