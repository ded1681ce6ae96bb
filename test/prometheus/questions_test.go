package prometheus

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
)

// strike starts a node, and waits for an XID there that hits a pod.
func strike(t *testing.T) machine {
	t.Helper()
	faults := filepath.Join(t.TempDir(), "faults")
	node := simulate(t, "h100x2", "--simulate-faults", faults)
	pages := node.pages(`(?m)^gpu_workload_xid_events_total\{.*k8s_pod_name="[^"]+".*gpu_xid_action="reset".*\} 0`)
	at := time.Now().Add(-pages.apart)
	if err := os.WriteFile(faults, []byte("gpu-xid\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pages.second = node.busy(`(?m)^gpu_workload_xid_events_total\{.*k8s_pod_name="[^"]+".*gpu_xid_action="reset".*\} [1-9]`)
	pages.apart, pages.count = time.Since(at), 1
	return pages
}

var running = regexp.MustCompile(`(?m)^inference_requests_running\{.*k8s_pod_name="([^"]+)"`)

// unasked is a machine one of whose engines nobody asks anything.
func unasked(t *testing.T, m machine) machine {
	t.Helper()
	found := running.FindStringSubmatch(m.first)
	if found == nil {
		t.Fatal("no engine of a pod")
	}
	asks := regexp.MustCompile(`(?m)^(inference_requests_(?:running|finished_total)\{.*k8s_pod_name="` + regexp.QuoteMeta(found[1]) + `".*\}) \S+$`)
	m.first, m.second = asks.ReplaceAllString(m.first, "$1 0"), asks.ReplaceAllString(m.second, "$1 0")
	return m
}

// question is one that people ask, and the truth: for each series of the answer its labels and number.
type question struct {
	board, panel string
	query        int
	by           []string // the labels that tell the series apart
	truth        map[string]float64
	top          bool // of which only the ten highest are shown
	span         string
}

// checkQuestions compares what dashboards answer with what the simulator did.
func (s *server) checkQuestions(t *testing.T, end time.Time, machines []machine) {
	var all []trace
	for i, m := range machines {
		all = append(all, s.traces(func(string) time.Duration { return history }, m, i)...)
	}
	// more sums what the series of a metric become more each second, those that a label has a value for.
	more := func(metric string, which func(trace) bool, by ...string) map[string]float64 {
		out := map[string]float64{}
		for _, x := range all {
			if x.labels.Get(model.MetricNameLabel) == metric && which(x) && x.step > 0 {
				out[key(x.own().Get, by)] += x.step
			}
		}
		return out
	}
	scaled := func(m map[string]float64, by float64) map[string]float64 {
		for k := range m {
			m[k] *= by
		}
		return m
	}
	has := func(label, value string) func(trace) bool {
		return func(x trace) bool { return x.labels.Get(label) == value }
	}
	const half = 0.5 // hours are looked at
	pods := []string{"k8s_namespace_name", "k8s_pod_name"}
	idle := running.FindStringSubmatch(machines[0].first)[1]
	devices := 0.
	for _, x := range all {
		if x.labels.Get(model.MetricNameLabel) == "gpu_up" {
			devices += x.from
		}
	}
	for name, q := range map[string]question{
		"Which team used the most GPU-hours this month?": {
			"chargeback", "Which team used the most GPU-hours?", 0, pods[:1],
			scaled(more("gpu_usage_allocated_time_seconds_total", has("gpu_workload_type", "kubernetes"), pods[0]), half), true, "30m"},
		"Which pod caused that spike?": {
			"workload", "Power by pod", 0, pods, more("gpu_workload_energy_joules_total", has("gpu_workload_type", "kubernetes"), pods...), true, "2m"},
		"What ran on a GPU when its XID fired?": {
			"health", "What ran on a GPU when its XID fired", 0, pods,
			scaled(more("gpu_workload_xid_events_total", has("gpu_xid_action", "reset"), pods...), half*3600), false, "30m"},
		"Which engine burns a GPU without serving requests?": {
			"inference", "Which engine burns a GPU without serving requests", 1, []string{"k8s_pod_name"},
			scaled(more("gpu_workload_allocated_time_seconds_total", has("k8s_pod_name", idle), "k8s_pod_name"), half), false, "30m"},
		"Whom to bill for a job of Kubernetes?": {
			"workload", "Whom to bill for a job?", 0, []string{"k8s_namespace_name", "k8s_workload_name"},
			scaled(more("gpu_usage_allocated_time_seconds_total", has("gpu_workload_type", "kubernetes"), "k8s_namespace_name", "k8s_workload_name"), half), false, "30m"},
		"Whom to bill for a job?": {
			"chargeback", "Whom to bill for a job?", 0, []string{"slurm_job_id", "slurm_account", "slurm_user"},
			scaled(more("gpu_workload_allocated_time_seconds_total", func(x trace) bool { return x.labels.Get("slurm_job_id") != "" }, "slurm_job_id", "slurm_account", "slurm_user"), half), false, "30m"},
	} {
		s.answers(t, name, q, end)
	}
	sum := 0.
	for _, expr := range panelOf(t, "fleet", "Is low utilization idle GPUs or bad scheduling?").exprs {
		for _, band := range s.query(end, chosen(expr, "30m", nil)) {
			sum += band.F
		}
	}
	if math.Abs(sum-devices) > 0.02*devices {
		t.Errorf("Is low utilization idle GPUs or bad scheduling? The bands add up to %.2f devices of %v", sum, devices)
	}
	t.Logf("Is low utilization idle GPUs or bad scheduling? The bands add up to %.2f devices of %v", sum, devices)
}

// key names a series by some of its labels.
func key(get func(string) string, by []string) string {
	var out []string
	for _, label := range by {
		out = append(out, get(label))
	}
	return strings.Join(out, "/")
}

func panelOf(t *testing.T, name, title string) asking {
	t.Helper()
	for _, b := range boards(t) {
		for _, p := range b.panels {
			if b.name == name && p.title == title {
				return p
			}
		}
	}
	t.Fatalf("%s: no panel %q", name, title)
	return asking{}
}

// answers compares an answer with the truth, within two of a hundred: rates are over whole windows.
func (s *server) answers(t *testing.T, name string, q question, end time.Time) {
	t.Helper()
	if len(q.truth) == 0 {
		t.Errorf("%s: nothing happened", name)
	}
	got := map[string]float64{}
	for _, x := range s.query(end, chosen(panelOf(t, q.board, q.panel).exprs[q.query], q.span, nil)) {
		got[key(x.Metric.Get, q.by)] += x.F
	}
	var said []string
	ranked := slices.SortedFunc(maps.Keys(q.truth), func(a, b string) int { return int(math.Copysign(1, q.truth[b]-q.truth[a])) })
	for i, who := range ranked {
		if i < 3 {
			said = append(said, fmt.Sprintf("%s %.3f (truth %.3f)", who, got[who], q.truth[who]))
		}
		if math.Abs(got[who]-q.truth[who]) > 0.02*q.truth[who]+1e-3 && (!q.top || i < 8) { // of equals others may be among ten
			t.Errorf("%s: %s: %v, and %v in truth", name, who, got[who], q.truth[who])
		}
	}
	t.Logf("%s %s, %q: %s", name, q.board, q.panel, strings.Join(said, "; "))
}
