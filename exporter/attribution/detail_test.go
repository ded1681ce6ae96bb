package attribution

import (
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// info is what is told of the one workload there is.
func (n *node) info() string {
	n.Helper()
	if len(n.last.Details) != 1 {
		n.Fatalf("%d workloads are described", len(n.last.Details))
	}
	return n.last.Details[0].Read.Description.Info[0].Labels.Text()
}

func shown(value string) *metric.Labels {
	return metric.NewLabels(metric.Label{Name: "k8s_pod_label_team", Value: value})
}

// The labels of a pod are on its info as they were when its labels froze.
func TestShownLabelsFreeze(t *testing.T) {
	n := newNode(t, Config{Hold: 20 * time.Second})
	n.claim("web-1", 1)
	n.picture(0, 0, 0)
	const method = `gpu_workload_method="sole_owner"`
	if got := n.info(); got != method {
		t.Errorf("before they are told: %s", got)
	}
	n.claims[0].Shown = shown("a")
	n.picture(10*time.Second, 1, 1)
	if got := n.info(); got != method+`,k8s_pod_label_team="a"` {
		t.Errorf("within the hold: %s", got)
	}
	n.picture(10*time.Second, 1, 1)
	n.claims[0].Shown = shown("b")
	n.picture(10*time.Second, 1, 1)
	if got := n.info(); got != method+`,k8s_pod_label_team="a"` {
		t.Errorf("after the hold: %s", got)
	}
}

// While who tells of pods has not been asked yet, labels wait longer, and counts with them: a series that
// has begun to count keeps its name.
func TestLabelsAreAwaited(t *testing.T) {
	for name, c := range map[string]struct{ await, told, longest time.Duration }{ // told after the first picture; 0: never
		"told late": {0, 80 * time.Second, 2 * time.Minute}, "never told": {0, 0, 2 * time.Minute}, "told too late": {0, 140 * time.Second, 2 * time.Minute},
		"awaited for longer": {200 * time.Second, 140 * time.Second, 200 * time.Second}, "not awaited": {time.Second, 80 * time.Second, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			told := c.told
			n := newNode(t, Config{Await: c.await})
			n.claims = []Claim{{Thing: gpu0, Share: 1, Detail: Detail{Awaited: true}, Workload: Workload{Type: telemetry.WorkloadTypeKubernetes, Namespace: "team", Pod: "web-1"}}}
			n.picture(0, 0, 0)
			for at := 10 * time.Second; at <= 180*time.Second; at += 10 * time.Second {
				if at == told {
					n.claims[0].Awaited, n.claims[0].Kind, n.claims[0].Name = false, "Deployment", "web"
				}
				n.picture(10*time.Second, 10, 1000)
				series := n.of(`k8s_pod_name="web-1"`)
				counts, _ := series.Accounting.BusyTime.Get()
				begun := told > 0 && at >= told || at >= c.longest
				if want := map[bool]float64{true: at.Seconds()}[begun]; counts != want {
					t.Errorf("after %v: %v, want %v", at, counts, want)
				}
			}
			if named := n.of(`k8s_workload_name="web"`) != nil; named != (told > 0 && told < c.longest) {
				t.Errorf("it bears what it was told: %v", named)
			}
			n.want("its bill", n.billed(`k8s_namespace_name="team"`).Accounting.BusyTime, 180)
		})
	}
}
