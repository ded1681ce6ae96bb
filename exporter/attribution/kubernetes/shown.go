package kubernetes

import (
	"maps"
	"slices"
	"strings"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

// What OpenTelemetry calls a label and an annotation of a pod, as Prometheus writes it.
const (
	labelPrefix      = "k8s_pod_label_"
	annotationPrefix = "k8s_pod_annotation_"
)

// shown are labels and annotations under the names they have on a page; clashes is how many are left
// out because another has the same name there.
func shown(labels, annotations map[string]string) (all *metric.Labels, clashes int) {
	var pairs []metric.Label
	for _, from := range []struct {
		prefix string
		all    map[string]string
	}{{labelPrefix, labels}, {annotationPrefix, annotations}} {
		taken := map[string]bool{}
		for _, name := range slices.Sorted(maps.Keys(from.all)) { // so that of two it is always the same one
			at := from.prefix + underscored(name)
			if taken[at] {
				clashes++
				continue
			}
			taken[at] = true
			pairs = append(pairs, metric.Label{Name: at, Value: from.all[name]})
		}
	}
	slices.SortFunc(pairs, func(a, b metric.Label) int { return strings.Compare(a.Name, b.Name) })
	return metric.NewLabels(pairs...), clashes
}

// underscored is a name as Prometheus' OTLP receiver translates it: whatever it does not take in the
// name of a label becomes an underscore.
func underscored(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, name)
}
