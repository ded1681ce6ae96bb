package prom

import (
	"slices"
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

// Who owns a part is told on its gauges once, also where the device is owned: a label that comes twice
// would have Prometheus refuse the whole page.
func TestOwnerOfAPartIsToldOnce(t *testing.T) {
	s := node(1)
	for i := range s.Devices[0].Read.Partitions {
		p := &s.Devices[0].Read.Partitions[i]
		p.Owned = metric.NewLabels(append(slices.Clone(p.Labels.Pairs()), metric.Label{Name: "k8s_pod_name", Value: "of-the-part"})...)
	}
	for _, accept := range []string{acceptText, acceptOpenMetrics} {
		told := 0
		for line := range strings.Lines(get(t, handler(s), "/metrics", "Accept", accept).Body.String()) {
			if n := strings.Count(line, "k8s_pod_name="); n > 1 {
				t.Errorf("%s: %d pods on %s", accept, n, line)
			}
			if strings.HasPrefix(line, "gpu_partition_") && strings.Contains(line, `k8s_pod_name="of-the-part"`) {
				told++
			}
		}
		if told == 0 {
			t.Errorf("%s: no gauge of a part has its owner", accept)
		}
	}
	families := parse(t, get(t, handler(s), "/metrics", "Accept", acceptText).Body.Bytes())
	if families["gpu_partition_memory_limit_bytes"] == nil {
		t.Error("the page has no gauge of a part")
	}
}
