package chart

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// snippet is the one block of YAML of the README with this first line.
func snippet(t *testing.T, first string) string {
	t.Helper()
	found := regexp.MustCompile("(?s)```yaml\n"+regexp.QuoteMeta(first)+"\n.*?```").FindAllString(readme(t), -1)
	if len(found) != 1 {
		t.Fatalf("%d snippets of %s", len(found), first)
	}
	return strings.TrimSuffix(strings.TrimPrefix(found[0], "```yaml\n"), "```")
}

// What the README says to set can be set.
func TestReadme(t *testing.T) {
	n := 0
	for line := range strings.Lines(readme(t)) {
		if strings.Contains(line, "nvidia/gpu-operator") { // another chart
			continue
		}
		for _, m := range regexp.MustCompile("--set ([a-zA-Z.]+=[^ `\n]+)").FindAllStringSubmatch(line, -1) {
			render(t, m[1])
			n++
		}
	}
	if n < 10 {
		t.Errorf("only %d values", n)
	}
}

// Each line of the README's table of privileges says what its value adds to what is there without it, and no
// privilege is missing in it.
func TestPrivilegeTable(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\| ([^|]+) \\| [^|]+ \\| [^|]+ \\|$")
	told := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(readme(t), -1) {
		has := func(values string) []string {
			all := render(t, values)
			return slices.Concat(privileges(podOf(t, all)), rights(t, all))
		}
		without := has(m[2])
		added := slices.DeleteFunc(has(m[1]), func(p string) bool { return slices.Contains(without, p) })
		want := strings.Split(strings.ReplaceAll(m[3], "`", ""), ", ")
		if slices.Sort(added); !slices.Equal(added, slices.Sorted(slices.Values(want))) {
			t.Errorf("%s adds to %s: %q, the README says %q", m[1], m[2], added, want)
		}
		for _, p := range want {
			told[p] = true
		}
	}
	for values, all := range privileged {
		for _, p := range all {
			if !told[strings.ReplaceAll(strings.ReplaceAll(p, "/data/k8/", "/var/lib/kubelet/"), "/var/lib/g ", "/var/lib/gpumeter ")] {
				t.Errorf("%s: the README's table has no %s", values, p)
			}
		}
	}
}

// A Prometheus without the operator takes what the README says, and calls targets as the monitors do.
func TestScrapeConfig(t *testing.T) {
	folder := t.TempDir()
	rules, err := filepath.Abs("../../rules/plain/gpumeter-recording.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(snippet(t, "# prometheus.yml"), "/etc/prometheus/gpumeter.yaml", rules)
	file := filepath.Join(folder, "prometheus.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(t, "GPUMETER_PROMTOOL", "check", "config", file); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	var config struct {
		Scrape []struct {
			Job        string `yaml:"job_name"`
			Kubernetes []struct {
				Selectors []struct{ Label string }
			} `yaml:"kubernetes_sd_configs"`
			Relabel []*relabel.Config `yaml:"relabel_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	job := config.Scrape[0]
	pods := decode(t, of(render(t, ""), "DaemonSet")[0].text).(*appsv1.DaemonSet).Spec.Template.Labels
	for pair := range strings.SplitSeq(job.Kubernetes[0].Selectors[0].Label, ",") {
		if name, value, _ := strings.Cut(pair, "="); pods[name] != value {
			t.Errorf("it looks for %s, the pods have %v", pair, pods)
		}
	}
	target := func(port string) map[string]string {
		b := labels.NewBuilder(labels.FromStrings("job", job.Job, "instance", "10.1.2.3:9450", "__meta_kubernetes_pod_node_name", "node-1", "__meta_kubernetes_pod_container_port_name", port))
		got := map[string]string{}
		for _, c := range job.Relabel {
			c.NameValidationScheme = model.LegacyValidation
			if !relabel.ProcessBuilder(b, c) {
				return got
			}
		}
		b.Labels().Range(func(l labels.Label) {
			if !strings.HasPrefix(l.Name, "__") {
				got[l.Name] = l.Value
			}
		})
		return got
	}
	if got, want := target("metrics"), (map[string]string{"job": "gpumeter", "instance": "node-1", "node": "node-1"}); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := target("other"); len(got) > 0 {
		t.Errorf("another port is a target: %v", got)
	}
}

// Kustomize finds the files the README names, and the image in them.
func TestKustomization(t *testing.T) {
	var k struct {
		Resources []string
		Images    []struct{ Name string }
	}
	if err := yaml.Unmarshal([]byte(snippet(t, "# kustomization.yaml")), &k); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range k.Resources {
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	if len(k.Images) != 1 || !strings.Contains(all.String(), "image: "+k.Images[0].Name+":") {
		t.Errorf("%v is not the image", k.Images)
	}
}
