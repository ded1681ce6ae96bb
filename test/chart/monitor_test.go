package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v3"
)

// monitor is as much of a ServiceMonitor or a PodMonitor as is looked at.
type monitor struct {
	SampleLimit         int `yaml:"sampleLimit"`
	LabelLimit          int `yaml:"labelLimit"`
	Endpoints           []endpoint
	PodMetricsEndpoints []endpoint `yaml:"podMetricsEndpoints"`
}

type endpoint struct {
	Port, Scheme string
	Relabelings  []struct {
		Action, Replacement, Regex string
		TargetLabel                string   `yaml:"targetLabel"`
		SourceLabels               []string `yaml:"sourceLabels"`
	}
}

// The target is called by the node, and none of its labels is the exporter's own pod.
func TestMonitors(t *testing.T) {
	for values, kind := range map[string]string{
		"prometheusOperator=true": "ServiceMonitor",
		"prometheusOperator=true,serviceMonitor.enabled=false,podMonitor.enabled=true": "PodMonitor",
	} {
		all := render(t, values)
		found := of(all, kind)
		if len(found) != 1 || len(of(all, "ServiceMonitor"))+len(of(all, "PodMonitor")) != 1 {
			t.Fatalf("%s: %d", values, len(found))
		}
		var m monitor
		if err := found[0].Spec.Decode(&m); err != nil {
			t.Fatal(err)
		}
		ends := slices.Concat(m.Endpoints, m.PodMetricsEndpoints)
		if len(ends) != 1 || ends[0].Port != "metrics" || ends[0].Scheme != "http" || m.SampleLimit == 0 || m.LabelLimit == 0 {
			t.Fatalf("%s: %+v", kind, m)
		}
		before := map[string]string{ // what the operator gives a target
			"job": "gpumeter", "instance": "10.1.2.3:9450", "pod": "gpumeter-x7k2p", "container": "gpumeter", "endpoint": "metrics",
			"service": "gpumeter", "namespace": "monitoring", "__meta_kubernetes_pod_node_name": "node-1", "__address__": "10.1.2.3:9450",
		}
		b := labels.NewBuilder(labels.FromMap(before))
		for _, r := range ends[0].Relabelings {
			c := relabel.DefaultRelabelConfig
			c.NameValidationScheme = model.LegacyValidation
			c.Action, c.TargetLabel = relabel.Action(r.Action), r.TargetLabel
			if r.Replacement != "" {
				c.Replacement = r.Replacement
			}
			if r.Regex != "" {
				c.Regex = relabel.MustNewRegexp(r.Regex)
			}
			for _, l := range r.SourceLabels {
				c.SourceLabels = append(c.SourceLabels, model.LabelName(l))
			}
			if !relabel.ProcessBuilder(b, &c) {
				t.Fatalf("%s: dropped by %+v", kind, r)
			}
		}
		got := map[string]string{}
		b.Labels().Range(func(l labels.Label) {
			if !strings.HasPrefix(l.Name, "__") {
				got[l.Name] = l.Value
			}
		})
		if want := map[string]string{"job": "gpumeter", "instance": "node-1", "node": "node-1"}; !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
}

// It asks as the pod answers.
func TestScheme(t *testing.T) {
	const tls = "web.tls.enabled=true,web.tls.secretName=cert"
	for kind, values := range map[string]string{
		"ServiceMonitor": "prometheusOperator=true,monitor.tlsConfig.insecureSkipVerify=true,",
		"PodMonitoring":  "podMonitoring.enabled=true,podMonitoring.endpoint.tls.insecureSkipVerify=true,",
	} {
		if o := of(render(t, values+tls), kind); len(o) != 1 || !strings.Contains(o[0].text, "scheme: https") || !strings.Contains(o[0].text, "insecureSkipVerify: true") {
			t.Errorf("%s: %+v", kind, o)
		}
	}
	for values, want := range map[string]string{"": "HTTP", tls: "HTTPS", tls + ",web.tls.clientAuth=true": "", "web.configSecret=s": ""} {
		for _, probe := range []string{"liveness", "readiness"} {
			c := pod(t, values).Containers[0]
			p := c.LivenessProbe
			if probe == "readiness" {
				p = c.ReadinessProbe
			}
			got := ""
			if p.HTTPGet != nil {
				got = strings.ToUpper(string(p.HTTPGet.Scheme))
				if got == "" {
					got = "HTTP"
				}
			} else if p.TCPSocket == nil {
				got = "no probe"
			}
			if got != want {
				t.Errorf("%s: %s probe by %q, want %q", values, probe, got, want)
			}
		}
	}
}

// A cluster without the operator's kinds gets all else, and one that has them the monitors as well.
func TestOperator(t *testing.T) {
	for values, want := range map[string]int{"": 0, "prometheusOperator=true": 5, "prometheusOperator=false": 0} {
		all := render(t, values)
		if got := len(of(all, "ServiceMonitor")) + len(of(all, "PrometheusRule")); got != want {
			t.Errorf("%s: %d of the operator's objects, want %d", values, got, want)
		}
	}
	for values, want := range map[string]int{"": 5, "prometheusOperator=false": 0} {
		out, err := helm(t, "template", "gpumeter", dir, "--api-versions", "monitoring.coreos.com/v1/ServiceMonitor,monitoring.coreos.com/v1/PrometheusRule", "--set", values)
		if got := strings.Count(out, "\napiVersion: monitoring.coreos.com/v1\n"); err != nil || got != want {
			t.Errorf("%s, where there are its kinds: %v, %d of them, want %d", values, err, got, want)
		}
	}
}

// The policy lets nothing out where nobody is asked.
func TestNetworkPolicy(t *testing.T) {
	for values, want := range map[string]int{"": 1, "metadata.source=none": 0, "attribution=none": 0} {
		var p struct {
			PolicyTypes     []string `yaml:"policyTypes"`
			Ingress, Egress []yaml.Node
		}
		all := of(render(t, values, "networkPolicy.enabled=true"), "NetworkPolicy")
		if len(all) != 1 {
			t.Fatalf("%s: %d policies", values, len(all))
		}
		if err := all[0].Spec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if len(p.PolicyTypes) != 2 || len(p.Ingress) != 1 || len(p.Egress) != want {
			t.Errorf("%s: %+v, want %d ways out", values, p, want)
		}
	}
}
