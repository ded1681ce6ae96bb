package self

import (
	"testing"

	"github.com/gpumeter/gpumeter/exporter/snapshot"
)

// The series is there once anything is known, and has more labels when more is.
func TestTarget(t *testing.T) {
	var now Target
	x := New(Config{Target: func() Target { return now }})
	for _, c := range []struct {
		is   Target
		want string
	}{
		{Target{}, ""},
		{Target{Node: "node-1"}, `k8s_node_name="node-1"`},
		{Target{"node-1", "eu", "eu-b", "a3-highgpu-8g"}, `k8s_node_name="node-1",cloud_region="eu",cloud_availability_zone="eu-b",host_type="a3-highgpu-8g"`},
		{Target{Node: "node-1", Type: "dgx"}, `k8s_node_name="node-1",host_type="dgx"`},
		{Target{}, ""},
	} {
		now = c.is
		for range 2 {
			s := new(snapshot.Snapshot)
			x.Stage(s)
			got := ""
			for _, k := range s.Self.Target.Info {
				got = k.Labels.Text()
				if n, _ := k.Value.Get(); n != 1 {
					t.Errorf("%+v: it is %v", c.is, n)
				}
			}
			if got != c.want {
				t.Errorf("%+v: got %s, want %s", c.is, got, c.want)
			}
		}
	}
}
