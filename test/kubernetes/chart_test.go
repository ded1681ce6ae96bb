package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpumeter/gpumeter/test/fakenvml"
)

const (
	chart  = "charts/gpumeter"
	runsOn = "gpus" // the namespace of the release
)

// workload is somebody's, who has a GPU.
const workload = `
apiVersion: v1
kind: Namespace
metadata: {name: vision}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: detector, namespace: vision}
spec:
  selector: {matchLabels: {app: detector}}
  template:
    metadata: {labels: {app: detector, team: sight}}
    spec:
      hostNetwork: true
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "` + image + `", args: [sleep], resources: {limits: {nvidia.com/gpu: 1}}}]
`

// nvidia is what NVIDIA's operator has made.
const nvidia = `
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: nvidia}
handler: nvidia
`

// chart is what befalls those who install gpumeter in a cluster.
func (r *room) chart(t *testing.T) {
	r.tells(t)
	client(t, "kubectl", "delete", "namespace", "ml", "lab", "monitoring", "--wait=false")
	r.startPodsAPI(t)
	r.startControllers(t)
	client(t, "kubectl", "wait", "--for=delete", "namespace/ml", "namespace/lab", "namespace/monitoring", "--timeout=60s")
	r.injectDriver(t)
	own, test := images(t)
	importGpumeter(t, own, "gpumeter.test/next:next")
	importBusybox(t, test)
	r.startDNS(t)
	t.Run("without the operator and without a driver it is ready, and says what it waits for", r.bareNode)
	client(t, "kubectl", "apply", "--server-side", "-f", os.Getenv("GPUMETER_OPERATOR_CRDS"))
	client(t, "kubectl", "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	r.whole.prefer(uuid(0))
	apply(t, nvidia+"---"+workload)
	client(t, "kubectl", "label", "node", nodeName, "nvidia.com/gpu.present=true", "topology.kubernetes.io/zone=zone-a")
	t.Run("the API server accepts what every preset renders", r.presets)
	t.Run("the page shows whose the GPUs are, also after an upgrade, and nothing is left behind", func(t *testing.T) {
		r.lifecycle(t, "helm", "metadata.source=podsAPI", "metadata.source=kubelet,metadata.kubeletInsecure=true", "migProcesses=true", "state.hostPath=/var/lib/gpumeter")
		if _, err := os.Stat("/var/lib/gpumeter/inventory.json"); err != nil {
			t.Errorf("state.hostPath keeps nothing: %v", err)
		}
	})
	t.Run("with Helm 4 it is the same", func(t *testing.T) { r.lifecycle(t, "helm4") })
	t.Run("without Helm it is the same", r.manifests)
	t.Run("Prometheus takes its numbers", r.collected)
	t.Run("Pod Security", r.podSecurity)
}

// injectDriver lays the fake driver beside the runtime that mounts it.
func (r *room) injectDriver(t *testing.T) {
	t.Helper()
	output(t, "test/kubernetes/runtime", []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-o", roomDir+"/nvidia", ".")
	library, err := os.ReadFile(r.gpus.library)
	if err == nil {
		err = errors.Join(os.MkdirAll(roomDir+"/driver", 0o755), os.WriteFile(roomDir+"/driver/"+fakenvml.Library, library, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	driver{config: roomDir + "/driver/config"}.tell(t)
	if err := os.Chmod(roomDir+"/driver/config", 0o644); err != nil {
		t.Fatal(err)
	}
}

// images are those the chart asks for, its own and that of helm test.
func images(t *testing.T) (own, test string) {
	t.Helper()
	var values struct {
		Image struct{ Repository string }
		Test  struct{ Image string }
	}
	var about struct{ AppVersion string }
	readYAML(t, chart+"/values.yaml", &values)
	readYAML(t, chart+"/Chart.yaml", &about)
	return values.Image.Repository + ":" + about.AppVersion, values.Test.Image
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func (r *room) bareNode(t *testing.T) {
	before, err := r.objects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	notes := client(t, "helm", "install", "gpumeter", chart, "--namespace", runsOn, "--create-namespace", "--wait", "--timeout", "2m")
	if !strings.Contains(notes, "monitors and rules were left out") {
		t.Errorf("the notes do not say what there is not:\n%s", notes)
	}
	e, _ := r.running(t, runsOn)
	e.shows(t, `!gpu_up`, `gpumeter_source_state{gpumeter_source="nvml",gpumeter_source_state="absent"} == 1`)
	if ready, err := e.get(t.Context(), "/readyz"); err != nil || !strings.Contains(ready, "nvml") {
		t.Errorf("%v: what it waits for is not said: %s", err, ready)
	}
	client(t, "helm", "uninstall", "gpumeter", "--namespace", runsOn, "--wait")
	r.left(t, before, emptied(runsOn)...)
	client(t, "kubectl", "delete", "namespace", runsOn)
}

// owned is what the page has of the workload's GPU.
var owned = []string{
	"gpu_up == 1",
	`gpu_owner_info{k8s_namespace_name="vision",k8s_container_name="main",k8s_workload_kind="Deployment",k8s_workload_name="detector"} == 1`,
	`gpu_power_draw_watts{k8s_workload_name="detector"} > 0`,
	`gpu_partition_memory_limit_bytes{gpu_uuid="` + uuid(2) + `"} > 0`,
}

// lifecycle installs, upgrades and uninstalls with one of Helm's versions.
func (r *room) lifecycle(t *testing.T, helm string, values ...string) {
	before, err := r.objects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	release := func(does, values string) (*exporter, *corev1.Pod) {
		t.Helper()
		client(t, helm, does, "gpumeter", chart, "--namespace", runsOn, "--create-namespace", "--wait", "--timeout", "2m", "--set", "preset=gpuOperator"+values)
		e, pod := r.running(t, runsOn)
		e.shows(t, owned...)
		return e, pod
	}
	_, pod := release("install", "")
	r.watchesFrom(t, runsOn)
	r.unprivileged(t, pod)
	client(t, helm, "test", "gpumeter", "--namespace", runsOn, "--timeout", "1m")
	if found := strings.Fields(client(t, "kubectl", "get", "servicemonitors,prometheusrules", "-n", runsOn, "-o", "name")); len(found) != 5 {
		t.Errorf("want a monitor, three objects with alerts and one with recording rules: %q", found)
	}
	const soon = ",extraArgs={--kubernetes.api-jitter=0s}"
	e, next := release("upgrade", ",image.repository=gpumeter.test/next,image.tag=next,metadata.podLabels={team}"+soon)
	if next.UID == pod.UID {
		t.Error("the upgrade was none")
	}
	e.shows(t, `target_info{cloud_availability_zone="zone-a"} == 1`, `gpu_workload_info{k8s_namespace_name="vision",k8s_pod_label_team="sight",k8s_workload_chain="ReplicaSet/`+r.replicaSet(t)+`, Deployment/detector"} == 1`)
	for _, more := range values {
		release("upgrade", soon+","+more)
	}
	client(t, helm, "uninstall", "gpumeter", "--namespace", runsOn, "--wait")
	r.left(t, before, emptied(runsOn)...)
	client(t, "kubectl", "delete", "namespace", runsOn)
}

// manifests applies the plain ones as the README does.
func (r *room) manifests(t *testing.T) {
	before, err := r.objects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"manifests/gpuOperator.yaml", "manifests/prometheus-operator.yaml", "manifests/dashboards.yaml"}
	client(t, "kubectl", "create", "namespace", "monitoring")
	for _, file := range files {
		client(t, "kubectl", "apply", "--validate=strict", "-f", file)
	}
	e, pod := r.running(t, "monitoring")
	e.shows(t, owned...)
	r.unprivileged(t, pod)
	for _, file := range files {
		client(t, "kubectl", "delete", "-f", file)
	}
	r.left(t, before, emptied("monitoring")...)
	client(t, "kubectl", "delete", "namespace", "monitoring")
}

// replicaSet is the name of the workload's.
func (r *room) replicaSet(t *testing.T) string {
	t.Helper()
	return client(t, "kubectl", "get", "replicasets", "-n", "vision", "-o", "jsonpath={.items[0].metadata.name}")
}

// unprivileged looks at the process itself: what the kernel lets it do.
func (r *room) unprivileged(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	pids := processes(t, pod)
	if len(pids) != 1 {
		t.Fatalf("processes of the pod: %v", pids)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pids[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "Uid:\t0\t0\t0\t0"} {
		if !strings.Contains(string(status), line+"\n") {
			t.Errorf("not %q:\n%s", line, status)
		}
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmHWM") || strings.HasPrefix(line, "VmRSS") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// podSecurity has namespaces refuse what they say they refuse, and nothing else.
func (r *room) podSecurity(t *testing.T) {
	t.Run("without attribution: restricted", func(t *testing.T) {
		r.enforce(t, "restricted")
		client(t, "helm", "install", "gpumeter", chart, "--namespace", "restricted", "--set", "attribution=none,preset=gpuOperator", "--wait", "--timeout", "2m")
		e, _ := r.running(t, "restricted")
		e.shows(t, "gpu_up == 1", "!gpu_owner_info{k8s_pod_name!=\"\"}")
		client(t, "helm", "uninstall", "gpumeter", "--namespace", "restricted", "--wait")
	})
	t.Run("with attribution: baseline", func(t *testing.T) {
		r.enforce(t, "baseline")
		notes := client(t, "helm", "install", "gpumeter", chart, "--namespace", "baseline")
		if !strings.Contains(notes, `Pod Security "baseline"`) {
			t.Errorf("not in the notes:\n%s", notes)
		}
		await(t, "a refusal", func(ctx context.Context) error {
			events, err := r.admin.CoreV1().Events("baseline").List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedCreate"})
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return strings.Contains(e.Message, "hostPath") }) {
				return fmt.Errorf("no event: %v", events.Items)
			}
			return nil
		})
		client(t, "helm", "uninstall", "gpumeter", "--namespace", "baseline", "--wait")
	})
}

// enforce makes a namespace of that level.
func (r *room) enforce(t *testing.T, level string) {
	t.Helper()
	apply(t, `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "`+level+`", "labels": {"pod-security.kubernetes.io/enforce": "`+level+`"}}}`)
}

// presets has everything rendered looked at by the API server, and by its schemas.
func (r *room) presets(t *testing.T) {
	schemas := r.schemas(t)
	const all = ",networkPolicy.enabled=true,web.tls.enabled=true,web.tls.secretName=s,rules.extra=true,rules.compat={dcgm-4.8},kernelLog=true,migProcesses=true"
	for _, values := range []string{
		"preset=bare", "preset=gpuOperator,dashboards.enabled=false", "preset=gke,dashboards.enabled=false", "preset=eks,dashboards.enabled=false",
		"preset=aks,dashboards.enabled=false", "preset=openshift,dashboards.enabled=false", "preset=openshift,attribution=none,dashboards.enabled=false,networkPolicy.enabled=true",
		"serviceMonitor.enabled=false,podMonitor.enabled=true,dashboards.enabled=false" + all,
	} {
		t.Run(values, func(t *testing.T) {
			rendered := client(t, "helm", "template", "gpumeter", chart, "--namespace", "default", "--set", "prometheusOperator=true,"+values)
			if said, err := try(t.Context(), rendered, "kubeconform", "-strict", "-summary", "-schema-location", schemas, "-skip", unknown); err != nil {
				t.Error(said, err)
			}
			if said, err := try(t.Context(), withoutKind(rendered, unknown), "kubectl", "apply", "--dry-run=server", "--validate=strict", "-f", "-"); err != nil {
				t.Error(said, err)
			}
		})
	}
	for name, broken := range map[string]string{"an unknown field": "metadata: {name: a}\nspec: {selectr: {}}", "another sort": "metadata: {name: a}\nspec: {selector: 1}"} {
		if said, err := try(t.Context(), "apiVersion: v1\nkind: Service\n"+broken, "kubeconform", "-strict", "-schema-location", schemas); err == nil {
			t.Errorf("the schemas take %s: %s", name, said)
		}
	}
}

// unknown is the kind of OpenShift's that this cluster does not have.
const unknown = "SecurityContextConstraints"

// withoutKind leaves out what this cluster has no kind for.
func withoutKind(objects, kind string) string {
	all := slices.DeleteFunc(strings.Split(objects, "\n---\n"), func(o string) bool { return strings.Contains(o, "\nkind: "+kind+"\n") })
	return strings.Join(all, "\n---\n")
}
