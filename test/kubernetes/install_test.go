package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

// startControllers makes a whole cluster of it: pods are made by who owns them, put on the node by the scheduler, and
// have accounts.
func (c *cluster) startControllers(t *testing.T) {
	t.Helper()
	c.api.kill(t) // it would wait for those who watch
	c.api.args = slices.DeleteFunc(c.api.args, func(arg string) bool { return arg == withoutAccounts })
	c.startAPI(t)
	c.controllers.start(t)
	c.scheduler.start(t)
}

// client runs kubectl or helm as the administrator, and fails the test where that fails.
func client(t *testing.T, name string, args ...string) string {
	t.Helper()
	said, err := try(t.Context(), "", name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// try runs one, with input.
func try(ctx context.Context, input, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, os.Getenv("GPUMETER_"+strings.ToUpper(name)), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+roomDir+"/home", "HELM_CACHE_HOME="+roomDir+"/home", "HELM_CONFIG_HOME="+roomDir+"/home", "HELM_DATA_HOME="+roomDir+"/home")
	cmd.Stdin = strings.NewReader(input)
	said, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %v: %w\n%s", name, args, err, said)
	}
	return string(said), err
}

// apply makes objects.
func apply(t *testing.T, objects string) {
	t.Helper()
	if _, err := try(t.Context(), objects, "kubectl", "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// fleeting are made and forgotten by the cluster at its own time.
var fleeting = []string{"events", "leases", "componentstatuses"}

// objects are all there are in the cluster, as RESOURCE NAMESPACE/NAME.
func (c *cluster) objects(ctx context.Context) (map[string]bool, error) {
	client, err := metadata.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	lists, err := c.admin.Discovery().ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists) {
		for _, r := range list.APIResources {
			version, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil || slices.Contains(fleeting, r.Name) {
				continue
			}
			found, err := client.Resource(version.WithResource(r.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.Name, err)
			}
			for _, o := range found.Items {
				all[r.Name+" "+o.Namespace+"/"+o.Name] = true
			}
		}
	}
	return all, nil
}

// emptied is what the cluster itself has in a namespace, and the namespace.
func emptied(namespace string) []string {
	return []string{"configmaps " + namespace + "/kube-root-ca.crt", "namespaces /" + namespace, "serviceaccounts " + namespace + "/default"}
}

// left waits until there is nothing beside what was there, but these.
func (c *cluster) left(t *testing.T, before map[string]bool, but ...string) {
	t.Helper()
	await(t, "nothing left", func(ctx context.Context) error {
		now, err := c.objects(ctx)
		if err != nil {
			return err
		}
		maps.DeleteFunc(now, func(o string, _ bool) bool { return before[o] })
		if more := slices.Sorted(maps.Keys(now)); !slices.Equal(more, but) {
			return fmt.Errorf("%q, want %q", more, but)
		}
		return nil
	})
}

// running is the exporter of a release, once the one pod of the node is ready and none has been restarted.
func (c *cluster) running(t *testing.T, namespace string) (*exporter, *corev1.Pod) {
	t.Helper()
	var pod *corev1.Pod
	await(t, "the release's pod", func(ctx context.Context) error {
		pods, err := c.admin.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=gpumeter"})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 || len(pods.Items[0].Status.ContainerStatuses) != 1 {
			return fmt.Errorf("%d pods", len(pods.Items))
		}
		pod = &pods.Items[0]
		if is := pod.Status.ContainerStatuses[0]; !is.Ready {
			return fmt.Errorf("not ready: %+v", is)
		} else if is.RestartCount > 0 {
			t.Fatalf("it was started again: %+v", is)
		}
		return nil
	})
	return &exporter{url: "http://" + pod.Status.PodIP + ":9450", client: http.DefaultClient}, pod
}

// tells logs what the cluster has to say where a test has failed.
func (c *cluster) tells(t *testing.T) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		ctx := context.WithoutCancel(t.Context())
		for _, args := range [][]string{{"get", "pods,daemonsets", "-A", "-o", "wide"}, {"get", "events", "-A"}} {
			said, err := try(ctx, "", "kubectl", args...)
			t.Log(args, err, said)
		}
		logs, err := filepath.Glob("/var/log/pods/gpus_*/*/*.log")
		for _, file := range logs {
			text, err := os.ReadFile(file)
			t.Log(file, err, string(text))
		}
		t.Log(err)
	})
}
