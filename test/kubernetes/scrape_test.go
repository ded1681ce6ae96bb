package kubernetes

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// collected has Prometheus find the release by its monitor, as the operator tells it to, and without the operator as the
// README does. Whoever asks is the administrator, by the files of an account: to both it is as if they ran in a pod.
func (r *room) collected(t *testing.T) {
	before, err := r.objects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(apiCA)
	if err != nil {
		t.Fatal(err)
	}
	write(t, "/run/secrets/kubernetes.io/serviceaccount/ca.crt", string(ca)) // /var/run is a link
	write(t, "/run/secrets/kubernetes.io/serviceaccount/token", "admin")
	client(t, "helm", "install", "gpumeter", chart, "--namespace", runsOn, "--create-namespace", "--wait", "--timeout", "2m",
		"--set", "preset=gpuOperator,rules.extra=true,extraArgs={--kubernetes.api-jitter=0s}")
	e, _ := r.running(t, runsOn)
	e.shows(t, owned...)
	t.Run("by its ServiceMonitor", func(t *testing.T) { r.prometheus(t, r.operated(t)) })
	t.Run("without the operator", func(t *testing.T) {
		rules := write(t, roomDir+"/plain/rules.yaml", output(t, "", nil, os.Getenv("GPUMETER_BINARY"), "bundle", "rules", "--plain"))
		r.prometheus(t, strings.Replace(readme(t, "# prometheus.yml"), "/etc/prometheus/gpumeter.yaml", rules, 1))
	})
	client(t, "helm", "uninstall", "gpumeter", "--namespace", runsOn, "--wait")
	client(t, "kubectl", "delete", "namespace", runsOn)
	r.left(t, before)
}

// readme is the block of the README that begins so.
func readme(t *testing.T, first string) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, is := strings.Cut(string(text), "```yaml\n"+first+"\n")
	block, _, ends := strings.Cut(block, "```\n")
	if !is || !ends {
		t.Fatalf("README.md has no %s", first)
	}
	return block
}

// inPod are the variables by which a program in a pod finds the API server.
var inPod = []string{"KUBERNETES_SERVICE_HOST=" + apiAddress, "KUBERNETES_SERVICE_PORT=443"}

// operated is the configuration that Prometheus' operator makes of all monitors and rules there are. Its rules lie
// where the configuration says.
func (r *room) operated(t *testing.T) (config string) {
	t.Helper()
	operator := r.daemon("operator", inPod, "--web.listen-address=127.0.0.1:8081")
	operator.start(t)
	t.Cleanup(func() {
		if err := operator.stop(); err != nil || t.Failed() {
			t.Logf("operator: %v\n%s", err, operator.tail())
		}
	})
	apply(t, `{"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus", "metadata": {"name": "all", "namespace": "`+runsOn+`"}, "spec": {
		"serviceMonitorSelector": {}, "serviceMonitorNamespaceSelector": {}, "ruleSelector": {}, "ruleNamespaceSelector": {}}}`)
	const rules = "prometheus-all-rulefiles-"
	core := r.admin.CoreV1()
	await(t, "the operator", func(ctx context.Context) error {
		secret, err := core.Secrets(runsOn).Get(ctx, "prometheus-all", metav1.GetOptions{})
		if err != nil {
			return err
		}
		unzip, err := gzip.NewReader(bytes.NewReader(secret.Data["prometheus.yaml.gz"]))
		if err != nil {
			return err
		}
		text, err := io.ReadAll(unzip)
		if err != nil {
			return err
		}
		if config = string(text); !strings.Contains(config, "serviceMonitor/"+runsOn+"/gpumeter/0") || !strings.Contains(config, rules) {
			return errors.New("no monitor or no rules yet: " + config)
		}
		all, err := core.ConfigMaps(runsOn).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, files := range all.Items {
			for name, text := range files.Data {
				if strings.HasPrefix(files.Name, rules) {
					write(t, filepath.Join(roomDir, "operated", files.Name, name), text)
				}
			}
		}
		return nil
	})
	client(t, "kubectl", "delete", "prometheus", "-n", runsOn, "all") // which has done what it is here for
	// Its reloader puts these in, in the pod.
	return strings.NewReplacer("/etc/prometheus/rules/", roomDir+"/operated/", "$(SHARD)", "0", "$(POD_NAME)", "prometheus-all-0").Replace(config)
}

// prometheus runs one with a configuration: its target is the node, whose series have its labels and their own.
func (r *room) prometheus(t *testing.T, config string) {
	t.Helper()
	dir := t.TempDir()
	const listens = "127.0.0.1:9090"
	p := r.daemon("prometheus", inPod, "--config.file", write(t, dir+"/prometheus.yml", config), "--storage.tsdb.path", dir+"/data", "--web.listen-address", listens)
	p.start(t)
	t.Cleanup(func() {
		if err := p.stop(); err != nil || t.Failed() {
			t.Logf("Prometheus: %v\n%s\n%s", err, config, p.tail())
		}
	})
	api := &exporter{url: "http://" + listens, client: http.DefaultClient}
	target := map[string]string{"job": "gpumeter", "instance": nodeName, "node": nodeName}
	await(t, "the target", func(ctx context.Context) error {
		up, err := api.query(ctx, "up == 1")
		if err != nil {
			targets, _ := api.get(ctx, "/api/v1/targets")
			return fmt.Errorf("%w: %s", err, targets)
		}
		if delete(up, "__name__"); !maps.Equal(up, target) {
			return fmt.Errorf("it is %v, want %v", up, target)
		}
		return nil
	})
	got, err := api.query(t.Context(), `gpu_power_draw_watts{k8s_workload_name="detector"}`)
	if err != nil {
		t.Fatal(err)
	}
	if got["k8s_namespace_name"] != "vision" || got["k8s_pod_name"] == "" || got["instance"] != nodeName {
		t.Errorf("whose it is is not told: %v", got)
	}
	for name := range got {
		if regexp.MustCompile(`^(exported_.*|pod|namespace|container|endpoint|service)$`).MatchString(name) {
			t.Errorf("a label of the exporter's own pod: %v", got)
		}
	}
	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	page, err := api.get(t.Context(), "/api/v1/rules")
	if err == nil {
		err = json.Unmarshal([]byte(page), &rules)
	}
	n := 0
	for _, group := range rules.Data.Groups {
		for _, rule := range group.Rules {
			if n++; rule.Health == "err" {
				t.Errorf("%s: %s", rule.Name, rule.LastError)
			}
		}
	}
	if err != nil || n < 17 {
		t.Errorf("%d rules: %v", n, err)
	}
}

// query is the one series that answers.
func (e *exporter) query(ctx context.Context, expr string) (map[string]string, error) {
	page, err := e.get(ctx, "/api/v1/query?query="+url.QueryEscape(expr))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			Result []struct{ Metric map[string]string }
		}
	}
	if err := json.Unmarshal([]byte(page), &answer); err != nil {
		return nil, err
	}
	if len(answer.Data.Result) != 1 {
		return nil, fmt.Errorf("%s: want one series: %s", expr, page)
	}
	return answer.Data.Result[0].Metric, nil
}
