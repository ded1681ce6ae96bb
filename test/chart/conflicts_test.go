package chart

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Values that can not hold together end with a message that says what to change.
func TestConflicts(t *testing.T) {
	for values, want := range map[string]string{
		"web.tls.enabled=true": "web.tls.enabled wants web.tls.secretName",
		"web.tls.enabled=true,web.tls.secretName=a,web.configSecret=b": "web.tls.secretName and web.configSecret: give one",
		"web.tls.secretName=a":                             "want web.tls.enabled",
		"web.tls.clientAuth=true":                          "want web.tls.enabled",
		"rbac.create=false":                                "metadata.source api wants rights",
		"rbac.create=false,metadata.source=kubelet":        "metadata.source kubelet wants rights",
		"serviceAccount.create=false":                      "wants serviceAccount.name",
		"attribution=none,metadata.podLabels={a}":          "want attribution",
		"metadata.source=none,metadata.podAnnotations={a}": "metadata.source other than none",
		"metadata.kubeletInsecure=true":                    "belongs to metadata.source kubelet",
		"attribution=none,migProcesses=true":               "migProcesses wants attribution",
		"attribution=none,state.hostPath=/var/lib/g":       "state.hostPath wants attribution",
		"podMonitor.enabled=true":                          "every series is there twice",
		"monitor.basicAuth.a=b,monitor.authorization.a=b":  "monitor.basicAuth and monitor.authorization: give one",
		"podMonitoring.enabled=true,monitor.basicAuth.a=b": "give podMonitoring.endpoint",
		"extraArgs={--labels=join}":                        "--labels is set by a value of the chart",
		"web.tls.enabled=true,rbac.create=false":           "metadata.source api wants rights", // both are said
	} {
		out, err := helm(t, append([]string{"template", "gpumeter", dir}, sets([]string{values})...)...)
		if err == nil || !strings.Contains(out, "values that conflict") || !strings.Contains(out, want) {
			t.Errorf("%s: %v, want %q in\n%s", values, err, want, out)
		}
	}
}

// A key that is misspelt, or a value of another sort, is refused.
func TestStrict(t *testing.T) {
	for values, want := range map[string]string{
		"kernlLog=true":                      "'kernlLog' not allowed",
		"web.tls.enable=true":                "'enable' not allowed",
		"rules.config.idelFor=1h":            "'idelFor' not allowed",
		"rules.severities.GPUIdle=x":         "'GPUIdle' not allowed",
		"resources.limit.memory=1Gi":         "'limit' not allowed",
		"preset={gke,eks}":                   "/preset",
		"preset=gcp":                         "/preset",
		"vendors={intel}":                    "/vendors",
		"rules.compat={dcgm}":                "/rules/compat",
		"rules.config.idleFor=1.5h":          "/rules/config/idleFor",
		"rules.config.idleFor=":              "/rules/config/idleFor",
		"rules.config.healthScore=a":         "/rules/config/healthScore",
		`rules.config.xidActions=a"b`:        "/rules/config/xidActions",
		"web.port=http":                      "/web/port",
		"image.digest=sha256:12":             "/image/digest",
		"extraArgs={labels}":                 "/extraArgs",
		"updateStrategy.maxUnavailable=some": "/updateStrategy/maxUnavailable",
	} {
		out, err := helm(t, append([]string{"template", "gpumeter", dir}, sets([]string{values})...)...)
		if err == nil || !strings.Contains(strings.ReplaceAll(out, ".", "/"), want) {
			t.Errorf("%s: %v, want %q in\n%s", values, err, want, out)
		}
	}
	for _, values := range []string{"global.a=b", "enabled=true", "rules.config.temperatureDegrees=90.5", "updateStrategy.maxUnavailable=3"} {
		if out, err := helm(t, append([]string{"template", "gpumeter", dir}, sets([]string{values})...)...); err != nil {
			t.Errorf("%s: %v\n%s", values, err, out)
		}
	}
}

// cluster answers as an API server that has the kinds of the chart, and some more as group/Kind.
func cluster(t *testing.T, version string, more ...string) (kubeconfig string) {
	t.Helper()
	kinds := map[string][]string{}
	for _, kind := range append([]string{
		"/ServiceAccount", "/Service", "/ConfigMap", "/Pod", "apps/DaemonSet", "rbac.authorization.k8s.io/ClusterRole", "rbac.authorization.k8s.io/ClusterRoleBinding",
	}, more...) {
		group, kind, _ := strings.Cut(kind, "/")
		kinds[group] = append(kinds[group], fmt.Sprintf(`{"kind": %q, "name": "%ss", "namespaced": true, "verbs": ["get"]}`, kind, strings.ToLower(kind)))
	}
	pages := map[string]string{"/version": `{"major": "1", "minor": "36", "gitVersion": "` + version + `"}`, "/api": `{"kind": "APIVersions", "versions": ["v1"]}`}
	var groups []string
	for group, resources := range kinds {
		path, of := "/apis/"+group+"/v1", group+"/v1"
		if group == "" {
			path, of = "/api/v1", "v1"
		} else {
			groups = append(groups, `{"name": "`+group+`", "versions": [{"groupVersion": "`+of+`", "version": "v1"}]}`)
		}
		pages[path] = `{"kind": "APIResourceList", "groupVersion": "` + of + `", "resources": [` + strings.Join(resources, ",") + `]}`
	}
	pages["/apis"] = `{"kind": "APIGroupList", "groups": [` + strings.Join(groups, ",") + `]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if page, ok := pages[r.URL.Path]; ok {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, page)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "` + server.URL + `"}}], contexts: [{name: c, context: {cluster: c}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// What a user has to know is said when it is installed.
func TestNotes(t *testing.T) {
	plain := cluster(t, "v1.36.0")
	operated := cluster(t, "v1.36.0", "monitoring.coreos.com/ServiceMonitor", "monitoring.coreos.com/PodMonitor", "monitoring.coreos.com/PrometheusRule")
	for name, x := range map[string]struct {
		cluster, values string
		want            []string // with ! not
	}{
		"default":        {plain, "", []string{"every Linux node", "Pod Security", "--set attribution=none", "not in this cluster", "monitors and rules were left out", "is ready all the same", "!PRIVILEGED", "!SYS_ADMIN"}},
		"none":           {plain, "attribution=none", []string{"!Pod Security"}},
		"kernel log":     {plain, "kernelLog=true", []string{"PRIVILEGED: kernelLog"}},
		"GKE":            {plain, "preset=gke", []string{"PRIVILEGED: preset gke", "preset gke)"}},
		"MIG":            {plain, "migProcesses=true", []string{"SYS_ADMIN"}},
		"the operator":   {operated, "", []string{"!left out", "monitor.labels.release"}},
		"its labels":     {operated, "monitor.labels.release=prom", []string{"!left out", "!monitor.labels.release"}},
		"switched off":   {operated, "prometheusOperator=false", []string{"switched off"}},
		"on EKS":         {cluster(t, "v1.36.0-eks-1a2b3c"), "", []string{"--set preset=eks"}},
		"on GKE":         {cluster(t, "v1.36.0-gke.1234"), "", []string{"--set preset=gke"}},
		"GPU operator":   {cluster(t, "v1.36.0-eks-1a2b3c", "nvidia.com/ClusterPolicy"), "", []string{"--set preset=gpuOperator"}},
		"OpenShift":      {cluster(t, "v1.36.0", "security.openshift.io/SecurityContextConstraints"), "", []string{"--set preset=openshift"}},
		"preset is set":  {cluster(t, "v1.36.0-eks-1a2b3c"), "preset=eks", []string{"!another preset"}},
		"nothing wanted": {plain, "serviceMonitor.enabled=false,rules.enabled=false", []string{"!left out"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := helm(t, append([]string{"install", "gpumeter", dir, "--dry-run=server", "--disable-openapi-validation", "--kubeconfig", x.cluster}, sets([]string{x.values})...)...)
			_, notes, found := strings.Cut(out, "\nNOTES:\n")
			if err != nil || !found {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, text := range x.want {
				text, not := strings.CutPrefix(text, "!")
				if strings.Contains(notes, text) == not {
					t.Errorf("%q: want it: %v, in\n%s", text, !not, notes)
				}
			}
		})
	}
}
