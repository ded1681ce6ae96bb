package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/json" // knows upper from lower case, as the API server does
	"sigs.k8s.io/yaml"
)

// podMonitoring is what Google's description of the kind knows. Its Go module would bring all of their Prometheus.
type podMonitoring struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector     metav1.LabelSelector `json:"selector"`
		TargetLabels struct {
			Metadata []string `json:"metadata"`
		} `json:"targetLabels"`
		Limits struct {
			Samples          uint64 `json:"samples"`
			Labels           uint64 `json:"labels"`
			LabelNameLength  uint64 `json:"labelNameLength"`
			LabelValueLength uint64 `json:"labelValueLength"`
		} `json:"limits"`
		Endpoints []struct {
			Port          string `json:"port"`
			Scheme        string `json:"scheme"`
			Path          string `json:"path"`
			Interval      string `json:"interval"`
			Timeout       string `json:"timeout"`
			Authorization *struct {
				Type        string     `json:"type"`
				Credentials *secretKey `json:"credentials"`
			} `json:"authorization"`
			BasicAuth *struct {
				Username string     `json:"username"`
				Password *secretKey `json:"password"`
			} `json:"basicAuth"`
			TLS *struct {
				ServerName         string     `json:"serverName"`
				InsecureSkipVerify bool       `json:"insecureSkipVerify"`
				MinVersion         string     `json:"minVersion"`
				MaxVersion         string     `json:"maxVersion"`
				CA                 *secretKey `json:"ca"`
				Cert               *secretKey `json:"cert"`
				Key                *secretKey `json:"key"`
			} `json:"tls"`
			MetricRelabeling []struct {
				Action       string   `json:"action"`
				SourceLabels []string `json:"sourceLabels"`
				Separator    string   `json:"separator"`
				TargetLabel  string   `json:"targetLabel"`
				Regex        string   `json:"regex"`
				Modulus      uint64   `json:"modulus"`
				Replacement  string   `json:"replacement"`
			} `json:"metricRelabeling"`
		} `json:"endpoints"`
	} `json:"spec"`
}

type secretKey struct {
	Secret struct {
		Name string `json:"name"`
		Key  string `json:"key"`
	} `json:"secret"`
}

// constraints are OpenShift's, as far as its description is not about kinds of volumes the chart has not.
type constraints struct {
	metav1.TypeMeta          `json:",inline"`
	metav1.ObjectMeta        `json:"metadata"`
	AllowHostDirVolumePlugin bool                `json:"allowHostDirVolumePlugin"`
	AllowPrivilegedContainer bool                `json:"allowPrivilegedContainer"`
	AllowPrivilegeEscalation *bool               `json:"allowPrivilegeEscalation"`
	AllowHostIPC             bool                `json:"allowHostIPC"`
	AllowHostNetwork         bool                `json:"allowHostNetwork"`
	AllowHostPID             bool                `json:"allowHostPID"`
	AllowHostPorts           bool                `json:"allowHostPorts"`
	ReadOnlyRootFilesystem   bool                `json:"readOnlyRootFilesystem"`
	AllowedCapabilities      []corev1.Capability `json:"allowedCapabilities"`
	DefaultAddCapabilities   []corev1.Capability `json:"defaultAddCapabilities"`
	RequiredDropCapabilities []corev1.Capability `json:"requiredDropCapabilities"`
	FSGroup                  strategy            `json:"fsGroup"`
	RunAsUser                strategy            `json:"runAsUser"`
	SELinuxContext           strategy            `json:"seLinuxContext"`
	SupplementalGroups       strategy            `json:"supplementalGroups"`
	SeccompProfiles          []string            `json:"seccompProfiles"`
	Volumes                  []string            `json:"volumes"`
	Users                    []string            `json:"users"`
	Groups                   []string            `json:"groups"`
}

type strategy struct {
	Type string `json:"type"`
}

// decode reads an object as the API server does that refuses unknown fields, twice the same, and values of another sort.
func decode(t *testing.T, text string) runtime.Object {
	t.Helper()
	var foreign any
	switch {
	case strings.Contains(text, "\nkind: PodMonitoring\n"):
		foreign = new(podMonitoring)
	case strings.Contains(text, "\nkind: SecurityContextConstraints\n"):
		foreign = new(constraints)
	}
	if foreign != nil {
		asJSON, err := yaml.YAMLToJSONStrict([]byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if strict, err := json.UnmarshalStrict(asJSON, foreign); err != nil || len(strict) > 0 {
			t.Fatalf("%v, %v\n%s", err, strict, text)
		}
		return nil
	}
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, monitoringv1.AddToScheme} {
		if err := add(kinds); err != nil {
			t.Fatal(err)
		}
	}
	o, _, err := serializer.NewCodecFactory(kinds, serializer.EnableStrict).UniversalDeserializer().Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return o
}

// What is not the chart's own of a monitor goes to it as it is given, in the places the operator's and Google's API have.
func TestPassedOn(t *testing.T) {
	operator := []string{
		"prometheusOperator=true", "web.tls.enabled=true", "web.tls.secretName=cert",
		"monitor.labels.release=prom", "monitor.sampleLimit=0", "monitor.labelLimit=70",
		"monitor.tlsConfig.ca.secret.name=cert", "monitor.tlsConfig.ca.secret.key=ca.crt", "monitor.tlsConfig.serverName=gpumeter",
		"monitor.basicAuth.username.name=login", "monitor.basicAuth.username.key=user", "monitor.basicAuth.password.name=login", "monitor.basicAuth.password.key=password",
		"monitor.relabelings[0].action=replace", "monitor.relabelings[0].targetLabel=rack", "monitor.relabelings[0].replacement=r1",
		"monitor.metricRelabelings[0].action=drop", "monitor.metricRelabelings[0].sourceLabels={__name__}", "monitor.metricRelabelings[0].regex=go_.*",
	}
	check := func(kind string, tls *monitoringv1.TLSConfig, relabelings []monitoringv1.RelabelConfig) {
		t.Helper()
		if tls == nil || tls.CA.Secret == nil || tls.CA.Secret.Key != "ca.crt" || len(relabelings) != 5 || relabelings[4].TargetLabel != "rack" {
			t.Errorf("%s: %+v, %+v", kind, tls, relabelings)
		}
	}
	all := of(render(t, operator...), "ServiceMonitor")
	s := decode(t, all[0].text).(*monitoringv1.ServiceMonitor)
	end := s.Spec.Endpoints[0]
	check("ServiceMonitor", end.TLSConfig, end.RelabelConfigs)
	if end.BasicAuth.Password.Key != "password" || end.MetricRelabelConfigs[0].Regex != "go_.*" || s.Spec.SampleLimit != nil || *s.Spec.LabelLimit != 70 || s.Labels["release"] != "prom" {
		t.Errorf("ServiceMonitor: %+v", s)
	}
	all = of(render(t, append(operator, "serviceMonitor.enabled=false", "podMonitor.enabled=true")...), "PodMonitor")
	p := decode(t, all[0].text).(*monitoringv1.PodMonitor)
	check("PodMonitor", &monitoringv1.TLSConfig{SafeTLSConfig: *p.Spec.PodMetricsEndpoints[0].TLSConfig}, p.Spec.PodMetricsEndpoints[0].RelabelConfigs)
	render(t, "podMonitoring.enabled=true", "podMonitoring.endpoint.tls.ca.secret.name=cert", "podMonitoring.endpoint.tls.ca.secret.key=ca.crt",
		"podMonitoring.endpoint.basicAuth.username=prometheus", "podMonitoring.endpoint.basicAuth.password.secret.name=login", "podMonitoring.endpoint.basicAuth.password.secret.key=password",
		"podMonitoring.endpoint.metricRelabeling[0].action=drop", "podMonitoring.endpoint.metricRelabeling[0].sourceLabels={__name__}", "podMonitoring.endpoint.metricRelabeling[0].regex=go_.*")
}

// Labels that the chart has too are there once: the user's, but for those by which the pods are found.
func TestLabels(t *testing.T) {
	const name = `app\.kubernetes\.io/name=x`
	all := render(t, "prometheusOperator=true", "monitor.labels."+name, "rules.labels."+name, "podLabels."+name, "podLabels.team=ml", `nodeSelector.kubernetes\.io/os=linux`, "nodeSelector.pool=gpu")
	for _, kind := range []string{"ServiceMonitor", "PrometheusRule"} {
		if got := of(all, kind)[0].Metadata.Labels["app.kubernetes.io/name"]; got != "x" {
			t.Errorf("%s: %s", kind, got)
		}
	}
	d := decode(t, of(all, "DaemonSet")[0].text).(*appsv1.DaemonSet).Spec
	if got := d.Template.Labels; got["app.kubernetes.io/name"] != d.Selector.MatchLabels["app.kubernetes.io/name"] || got["team"] != "ml" {
		t.Errorf("pod: %v, asked for are %v", got, d.Selector.MatchLabels)
	}
	if got := d.Template.Spec.NodeSelector; len(got) != 2 {
		t.Errorf("nodes: %v", got)
	}
}

// The objects of the repository are the operator's too.
func TestObjects(t *testing.T) {
	for _, pattern := range []string{"*.yaml", "compat/*.yaml"} {
		files, err := filepath.Glob(filepath.Join("../../rules/objects", pattern))
		if err != nil || files == nil {
			t.Fatalf("no rules: %v", err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if r, ok := decode(t, string(text)).(*monitoringv1.PrometheusRule); !ok || len(r.Spec.Groups) == 0 {
				t.Errorf("%s: %+v", file, r)
			}
		}
	}
}
