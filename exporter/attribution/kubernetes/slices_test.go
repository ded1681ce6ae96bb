package kubernetes

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// sliceList is what the API server answers; basic: as it was in v1beta1.
func sliceList(basic bool) string {
	attributes := `"attributes":{"uuid":{"string":"GPU-` + id1 + `"},"type":{"string":"gpu"},"index":{"int":0},
		"resource.kubernetes.io/pciBusID":{"string":"0000:C5:00.0"},"driverVersion":{"version":"580.0.0"}}`
	if basic {
		attributes = `"basic":{` + attributes + `}`
	}
	return `{"kind":"ResourceSliceList","items":[7,{"spec":{"driver":"no driver"}},
		{"spec":{"driver":"gpu.nvidia.com","pool":{"name":"node-1"},"devices":[7,{"name":""},{"name":"gpu-0",` + attributes + `},
		{"name":"gpu-0-mig-1g10gb-19-4","attributes":{"uuid":{"string":"MIG-` + id2 + `"},"parentUUID":{"string":"GPU-` + id1 + `"},"profile":{"string":"1g.10gb"}}}]}}]}`
}

// A device DRA gave is known by its UUID once the API server is asked, which it is when one is held.
func TestSlices(t *testing.T) {
	for version, basic := range map[string]bool{"v1": false, "v1beta2": false, "v1beta1": true} {
		a, k := newFakeAPI(t), newFakeKubelet(t)
		path := "/apis/resource.k8s.io/" + version + "/resourceslices"
		a.other[path] = sliceList(basic)
		c := clientOf(t, k.start(), apiTells(a))
		until(t, "it polls", func() bool { return k.lists.Load() > 3 })
		if n := c.Counts().Asked[Slices]; n != 0 {
			t.Errorf("asked %d times though no DRA device is held", n)
		}
		k.holds(
			claimed("a", &podresources.ClaimResource{DriverName: "gpu.nvidia.com", PoolName: "node-1", DeviceName: "gpu-0"}),
			claimed("b", &podresources.ClaimResource{DriverName: "gpu.nvidia.com", PoolName: "node-1", DeviceName: "gpu-0-mig-1g10gb-19-4"}),
			claimed("c", &podresources.ClaimResource{DriverName: "gpu.nvidia.com", PoolName: "other", DeviceName: "gpu-3"}),
		)
		want := []string{"ml/a/main UUID GPU-" + id1, "ml/b/main MIG UUID MIG-" + id2, "ml/c/main minor number 3"}
		until(t, "the attributes count", func() bool { return slices.Equal(who(c.Holdings()), want) })
		all := c.Holdings().All()
		if all[0].Ref.PCI != "0000:c5:00.0" || all[1].Ref.Parent != "GPU-"+id1 || all[1].Ref.Part.Profile != "1g.10gb" {
			t.Errorf("%+v", all)
		}
		n := c.Counts()
		if n.Rejected != 4 || c.Sources()[Slices].Reason != "" {
			t.Errorf("%s: %d rejected, %+v", version, n.Rejected, c.Sources()[Slices])
		}
		a.mu.Lock()
		if last := a.seen[len(a.seen)-1]; last != path || len(a.seen) > 3 {
			t.Errorf("%s: asked for %q", version, a.seen)
		}
		a.mu.Unlock()
	}
}

// Without the API, or without slices, the name of the device counts.
func TestNoSlices(t *testing.T) {
	a, k := newFakeAPI(t), newFakeKubelet(t)
	k.holds(claimed("a", &podresources.ClaimResource{DriverName: "gpu.nvidia.com", PoolName: "node-1", DeviceName: "gpu-0"}))
	c := clientOf(t, k.start(), apiTells(a))
	until(t, "there are no slices", func() bool { return c.Sources()[Slices].Reason == Unsupported })
	if got := who(c.Holdings()); fmt.Sprint(got) != "[ml/a/main minor number 0]" {
		t.Errorf("%q", got)
	}
	if n := c.Counts().Asked[Slices]; n != 3 { // one for each version
		t.Errorf("asked %d times", n)
	}
}

func TestAttributesOf(t *testing.T) {
	for name, c := range map[string]struct {
		all  map[string]attribute
		want Attributes
	}{
		"own and qualified": {map[string]attribute{"gpu.nvidia.com/uuid": {"GPU-x"}, "profile": {"1g.10gb"}}, Attributes{UUID: "GPU-x", Profile: "1g.10gb"}},
		"another's":         {map[string]attribute{"example.com/uuid": {"GPU-x"}}, Attributes{}},
		"the standard address counts for more": {map[string]attribute{"pciAddr": {"0000:01:00.0"}, "resource.kubernetes.io/pciBusID": {"00000000:C5:00.0"}},
			Attributes{PCI: "0000:c5:00.0"}},
		"no address": {map[string]attribute{"pciAddress": {"where"}, "uuid": {"a\x00"}}, Attributes{}},
	} {
		if got := attributesOf("gpu.nvidia.com", c.all); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestConfig(t *testing.T) {
	for name, cfg := range map[string]Config{
		"node":       {Node: "a,metadata.name=b"},
		"metadata":   {Metadata: "everything"},
		"poll":       {Poll: -1},
		"timeout":    {Timeout: -1},
		"label":      {PodLabels: []string{"a b"}},
		"annotation": {PodAnnotations: []string{""}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("a wrong %s was taken", name)
		}
	}
	c, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if c.cfg.Socket != defaultSocket || c.cfg.Checkpoint != defaultCheckpoint || c.cfg.Poll != 5*time.Second || c.cfg.Jitter != time.Minute {
		t.Errorf("%+v", c.cfg)
	}
	// Before Run nobody is asked and every answer says so.
	if h := c.Holdings(); h.Reason != Waiting || len(h.All()) != 0 {
		t.Errorf("%+v", h)
	}
	if by, n, h := c.Pods(); by != "" || n != 0 || h.Reason != Waiting {
		t.Errorf("%s, %d, %+v", by, n, h)
	}
	none, err := New(Config{Metadata: MetadataNone})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, h := none.Pods(); h.Reason != Unset || len(none.Sources()) != 2 || none.Node().Name != "" {
		t.Errorf("%+v, %v", h, none.Sources())
	}
}

// Of pods of one name, the one that holds is meant.
func TestHolder(t *testing.T) {
	c, err := New(Config{Metadata: MetadataNone, Socket: filepath.Join(t.TempDir(), "absent")})
	if err != nil {
		t.Fatal(err)
	}
	c.pods.set(pod("a", "u-new", "Running"))
	c.pods.set(&Pod{Namespace: "ns", Name: "static", UID: "mirror", Hash: "hash"})
	for _, x := range []struct {
		h  Holding
		is string
	}{
		{Holding{Namespace: "ns", Pod: "a"}, "u-new"},
		{Holding{Namespace: "ns", Pod: "a", UID: "u-new"}, "u-new"},
		{Holding{Namespace: "ns", Pod: "a", UID: "u-old"}, ""},
		{Holding{Namespace: "ns", Pod: "static", UID: "hash"}, "mirror"},
		{Holding{Namespace: "ns", Pod: "b", UID: "u-new"}, ""},
		{Holding{Namespace: "ns", Pod: "b"}, ""},
	} {
		if p, ok := c.Holder(&x.h); p.UID != x.is || ok != (x.is != "") {
			t.Errorf("%+v: got %q, %v", x.h, p.UID, ok)
		}
	}
}
