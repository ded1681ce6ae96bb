// Package chart renders the Helm chart as its users do.
package chart

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

const dir = "../../charts/gpumeter"

var presets = []string{"bare", "gpuOperator", "gke", "eks", "aks", "openshift"}

// run starts a program that an environment variable names, away from any cluster and configuration of the machine.
func run(t *testing.T, variable string, args ...string) (string, error) {
	t.Helper()
	tool := os.Getenv(variable)
	if tool == "" {
		t.Skipf("%s names no program; `make test` sets it", variable)
	}
	home := t.TempDir()
	read(t)
	cmd := exec.CommandContext(t.Context(), tool, args...)
	cmd.Env = append(os.Environ(), "HOME="+home, "KUBECONFIG="+filepath.Join(home, "none"), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// helm runs Helm 3 and Helm 4, which have to say the same, but for blank lines and what a release's record is like.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	old, oldErr := run(t, "GPUMETER_HELM", args...)
	out, err := run(t, "GPUMETER_HELM4", args...)
	said := func(text string) string {
		if args[0] == "install" {
			_, text, _ = strings.Cut(text, "\nNOTES:\n")
		}
		return regexp.MustCompile(`\n\s*\n`).ReplaceAllString(strings.TrimSpace(text), "\n")
	}
	if diff := cmp.Diff(said(old), said(out)); diff != "" || (err == nil) != (oldErr == nil) {
		t.Errorf("%v: Helm 3: %v, Helm 4: %v (-3 +4):\n%s", args, oldErr, err, diff)
	}
	return out, err
}

// read opens all files of the chart, as helm does, so that go test's cache sees them.
func read(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			_, err = os.ReadFile(file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sets makes flags of KEY=VALUE.
func sets(values []string) (args []string) {
	for _, v := range values {
		args = append(args, "--set", v)
	}
	return args
}

// object is a rendered one.
type object struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Data map[string]string
	Spec yaml.Node
	text string
}

// render are the objects of the chart with these values, each of which an API server could read.
func render(t *testing.T, values ...string) (all []object) {
	t.Helper()
	if !strings.Contains(strings.Join(values, ","), "dashboards.") { // they are most of the text
		values = append(values, "dashboards.enabled=false")
	}
	out, err := helm(t, append([]string{"template", "gpumeter", dir, "--namespace", "monitoring"}, sets(values)...)...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", values, err, out)
	}
	for text := range strings.SplitSeq("\n"+out, "\n---\n") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		o := object{text: text}
		if err := yaml.Unmarshal([]byte(text), &o); err != nil || o.Kind == "" {
			t.Fatalf("%v: %v\n%s", values, err, text)
		}
		decode(t, text)
		all = append(all, o)
	}
	return all
}

// of are the objects of a kind.
func of(all []object, kind string) (some []object) {
	for _, o := range all {
		if o.Kind == kind {
			some = append(some, o)
		}
	}
	return some
}

// pod is what the DaemonSet runs with these values.
func pod(t *testing.T, values ...string) corev1.PodSpec {
	t.Helper()
	return podOf(t, render(t, values...))
}

func podOf(t *testing.T, all []object) corev1.PodSpec {
	t.Helper()
	sets := of(all, "DaemonSet")
	if len(sets) != 1 {
		t.Fatalf("%d DaemonSets", len(sets))
	}
	return decode(t, sets[0].text).(*appsv1.DaemonSet).Spec.Template.Spec
}

// privileges are what a pod has beyond the restricted profile of Pod Security.
func privileges(p corev1.PodSpec) (all []string) {
	has := func(is bool, what string) {
		if is {
			all = append(all, what)
		}
	}
	c := p.Containers[0]
	s := c.SecurityContext
	has(p.HostPID, "hostPID")
	has(p.HostIPC, "hostIPC")
	has(p.HostNetwork, "hostNetwork")
	has(c.Ports[0].HostPort != 0, "hostPort")
	has(s.Privileged != nil && *s.Privileged, "privileged")
	has(s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem, "writable root")
	has(p.SecurityContext.RunAsNonRoot == nil || !*p.SecurityContext.RunAsNonRoot, "user 0")
	has(p.SecurityContext.SeccompProfile == nil || p.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault, "no seccomp")
	has(p.SecurityContext.SELinuxOptions != nil, "SELinux")
	has(*p.AutomountServiceAccountToken, "token")
	if s.Privileged == nil {
		has(s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation, "escalation")
		has(s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}), "capabilities kept")
		for _, one := range s.Capabilities.Add {
			all = append(all, string(one))
		}
	}
	for _, v := range p.Volumes {
		if v.HostPath == nil {
			continue
		}
		i := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name })
		if c.VolumeMounts[i].ReadOnly {
			all = append(all, v.HostPath.Path)
		} else {
			all = append(all, v.HostPath.Path+" to write")
		}
	}
	return all
}

// kubeletPods is where the kubelet tells who holds what.
const kubeletPods = "/var/lib/kubelet/pod-resources"

// privileged is what a pod has by default, and with each value that adds or takes something.
var privileged = map[string][]string{
	"":                                  {"user 0", "token", kubeletPods, "/proc"},
	"attribution=none":                  nil,
	"metadata.source=none":              {"user 0", kubeletPods, "/proc"},
	"metadata.source=kubelet":           {"user 0", "token", kubeletPods, "/proc"},
	"metadata.source=podsAPI":           {"user 0", kubeletPods, "/proc", "/var/lib/kubelet/pods-api"},
	"kubelet.directory=/data/k8":        {"user 0", "token", "/data/k8/pod-resources", "/proc"},
	"kernelLog=true":                    {"privileged", "user 0", "token", kubeletPods, "/proc"},
	"migProcesses=true":                 {"user 0", "token", "SYS_ADMIN", kubeletPods, "/proc"},
	"state.hostPath=/var/lib/g":         {"user 0", "token", "/var/lib/g to write", kubeletPods, "/proc"},
	"preset=gpuOperator":                {"user 0", "token", kubeletPods, "/proc"},
	"preset=gke":                        {"privileged", "user 0", "token", kubeletPods, "/proc", "/home/kubernetes/bin/nvidia"},
	"preset=eks":                        {"user 0", "token", kubeletPods, "/proc"},
	"preset=aks":                        {"user 0", "token", kubeletPods, "/proc"},
	"preset=openshift":                  {"user 0", "SELinux", "token", kubeletPods, "/proc"},
	"attribution=none,preset=openshift": nil,
	"attribution=none,kernelLog=true":   {"privileged", "user 0"},
	"attribution=none,preset=gke":       {"privileged", "/home/kubernetes/bin/nvidia"},
}

// Nothing is there that is not said here.
func TestPrivileges(t *testing.T) {
	for values, want := range privileged {
		if got := privileges(pod(t, values)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", values, got, want)
		}
	}
}

// What it asks for is no more than was measured.
func TestResources(t *testing.T) {
	r := pod(t, "").Containers[0].Resources
	if cpu := r.Requests.Cpu().MilliValue(); cpu > 50 {
		t.Errorf("%d m CPU", cpu)
	}
	if memory := r.Limits.Memory().Value(); memory > 64<<20 {
		t.Errorf("%d bytes of memory", memory)
	}
	if !r.Limits.Cpu().IsZero() {
		t.Error("a limit of CPU holds up scrapes")
	}
}

// rights are what the account may do, as verb and resource.
func rights(t *testing.T, objects []object) (all []string) {
	t.Helper()
	for _, o := range of(objects, "ClusterRole") {
		for _, r := range decode(t, o.text).(*rbacv1.ClusterRole).Rules {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					all = append(all, verb+" "+resource)
				}
			}
		}
	}
	if len(of(objects, "ClusterRoleBinding")) != len(of(objects, "ClusterRole")) {
		t.Error("a role without its binding")
	}
	return all
}

// Each right has somebody who needs it.
func TestRights(t *testing.T) {
	for values, want := range map[string][]string{
		"":                              {"list pods", "watch pods", "get nodes", "list resourceslices"},
		"metadata.resourceSlices=false": {"list pods", "watch pods", "get nodes"},
		"metadata.source=kubelet":       {"get nodes/pods"},
		"metadata.source=podsAPI":       nil,
		"metadata.source=none":          nil,
		"attribution=none":              nil,
		"rbac.create=false,serviceAccount.name=a": nil,
	} {
		if got := rights(t, render(t, values)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", values, got, want)
		}
	}
}

// Every preset passes the strict lint, with all that can be switched on as with nothing.
func TestLint(t *testing.T) {
	for _, preset := range presets {
		for _, more := range []string{"", ",prometheusOperator=true,podMonitoring.enabled=true,networkPolicy.enabled=true,web.tls.enabled=true,web.tls.secretName=s,rules.extra=true"} {
			if out, err := helm(t, "lint", "--strict", dir, "--set", "preset="+preset+more); err != nil {
				t.Errorf("%s%s: %v\n%s", preset, more, err, out)
			}
			render(t, "preset="+preset+more)
		}
	}
}
