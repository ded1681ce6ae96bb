package kubernetes

import (
	"testing"
	"time"
)

// pod shortens the tables.
func pod(name, uid, phase string, containers ...Container) *Pod {
	return &Pod{Namespace: "ns", Name: name, UID: uid, Phase: phase, Containers: containers}
}

func TestTable(t *testing.T) {
	tab := newTable(&counts{})
	c1 := Container{Name: "c", ID: "id-1"}
	tab.set(pod("a", "u1", "Running", c1))
	if p, ok := tab.named("ns", "a"); !ok || p.UID != "u1" {
		t.Errorf("by name: %v, %v", p, ok)
	}
	if p, ok := tab.withUID("u1"); !ok || p.Name != "a" {
		t.Errorf("by UID: %v, %v", p, ok)
	}
	if p, c, ok := tab.withContainer("id-1"); !ok || p.Name != "a" || c.Name != "c" {
		t.Errorf("by container: %v, %v, %v", p, c, ok)
	}
	tab.set(pod("a", "u1", "Running", Container{Name: "c", ID: "id-2"}))
	if _, _, ok := tab.withContainer("id-1"); ok {
		t.Error("a container that was replaced is still there")
	}
	tab.remove("ns", "a", "u9")
	if _, ok := tab.named("ns", "a"); !ok {
		t.Error("the removal of another pod removed this one")
	}
	tab.set(pod("a", "u1", "Succeeded"))
	if _, ok := tab.named("ns", "a"); ok || tab.standing("ns", "a", "") != ended || tab.standing("ns", "a", "u1") != ended {
		t.Error("a pod that has ended is known as if it had not")
	}
	// Its successor, as a StatefulSet makes one.
	tab.set(pod("a", "u2", "Pending"))
	tab.set(pod("a", "u1", "Failed"))
	if p, ok := tab.named("ns", "a"); !ok || p.UID != "u2" || tab.standing("ns", "a", "u2") != running || tab.standing("ns", "a", "u1") != ended {
		t.Errorf("the successor is not the one of the name: %v, %v", p, ok)
	}
	if tab.standing("ns", "a", "u3") != running { // a source may know a static pod by another UID
		t.Error("a UID nobody told of hides the pod of the name")
	}
	tab.remove("ns", "a", "u1")
	if _, ok := tab.named("ns", "a"); !ok {
		t.Error("the end of the old pod removed the new")
	}
	tab.remove("ns", "a", "")
	if n, _ := tab.told(); n != 0 || len(tab.byUID) != 0 || len(tab.byContainer) != 0 {
		t.Errorf("%d pods left, %v, %v", n, tab.byUID, tab.byContainer)
	}
	if tab.standing("ns", "a", "") != unknown {
		t.Error("a pod that is gone is known")
	}
}

// The API server knows a static pod by the UID of its mirror; control groups by its configuration's hash.
func TestStaticPods(t *testing.T) {
	const hash = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
	d := &reader{counts: &counts{}}
	mirror, err := d.pod(&record{Namespace: "kube-system", Name: "dcgm-node-1", UID: "u1", Annotations: map[string]string{configHash: hash, mirrorOf: hash},
		Owners: []reference{{APIVersion: "v1", Kind: "Node", Name: "node-1", Controller: true}}})
	if err != nil || mirror.Hash != hash || mirror.Workload != (Owner{Kind: "Pod", Name: "dcgm-node-1"}) {
		t.Fatalf("%+v, %v", mirror, err)
	}
	own, err := d.pod(&record{Namespace: "kube-system", Name: "dcgm-node-1", UID: hash, Annotations: map[string]string{configHash: hash}})
	if err != nil || own.Hash != "" {
		t.Fatalf("%+v, %v", own, err)
	}
	for name, pods := range map[string][]*Pod{"API server": {mirror}, "kubelet": {own}, "both": {mirror, own}, "both, the other way round": {own, mirror}} {
		tab := newTable(&counts{})
		for _, p := range pods {
			tab.set(p)
		}
		if p, ok := tab.withUID(hash); !ok || p.Name != "dcgm-node-1" {
			t.Errorf("%s: not found by its hash", name)
		}
		for _, p := range pods {
			tab.remove(p.Namespace, p.Name, p.UID)
		}
		if len(tab.byName)+len(tab.byUID) != 0 {
			t.Errorf("%s: left over: %v, %v", name, tab.byName, tab.byUID)
		}
	}
}

// What is told again is not new: callers share one copy.
func TestTableShares(t *testing.T) {
	tab := newTable(&counts{})
	labels := map[string]string{"a": "b"}
	first := pod("a", "u1", "Running")
	first.Labels = labels
	tab.replace([]*Pod{first}, nil)
	again := pod("a", "u1", "Running")
	again.Labels = map[string]string{"a": "b"}
	tab.replace([]*Pod{again, pod("b", "u2", "Running")}, nil)
	if tab.byName[podName{"ns", "a"}] != first {
		t.Error("the same pod was taken for another")
	}
	tab.set(again)
	if tab.byUID["u1"] != first {
		t.Error("an event without news replaced the pod")
	}
}

func TestTableIsBounded(t *testing.T) {
	n := &counts{}
	tab := newTable(n)
	for i := range 2*mostPods + 10 {
		tab.set(pod("p", string(rune('a'+i%26))+time.Duration(i).String(), "Running"))
	}
	if len(tab.byUID) > 2*mostPods || n.rejected.Load() != 10 {
		t.Errorf("%d pods, %d rejected", len(tab.byUID), n.rejected.Load())
	}
}

// What a pod that has ended held is left out, however the end is told, and nobody else's is.
func TestEndings(t *testing.T) {
	now := time.Unix(1e9, 0)
	clock := func() time.Time { return now }
	n := &counts{}
	cfg := Config{}
	if err := cfg.complete(); err != nil {
		t.Fatal(err)
	}
	tab, teller := newTable(n), newHealth(APIServer, n, clock, cfg.Logger)
	e := &endings{pods: tab, now: clock, counts: n}
	holding := func(pod, uid string) Holding { return Holding{Namespace: "ns", Pod: pod, UID: uid} }
	is := func(what string, left int, unheard bool, want ...Holding) {
		t.Helper()
		got, out, missing := e.leaveOut(append([]Holding{}, holding("a", ""), holding("b", ""), holding("s", "u-new")))
		same := len(got) == len(want)
		for i := range want {
			same = same && got[i] == want[i]
		}
		if !same || out != left || missing != unheard {
			t.Errorf("%s: got %v, %d left out, unheard %v; want %v, %d, %v", what, got, out, missing, want, left, unheard)
		}
	}
	a, b, s := holding("a", ""), holding("b", ""), holding("s", "u-new")
	is("nobody told of pods", 0, true, a, b, s)
	teller.well()
	tab.replace([]*Pod{pod("else", "u", "")}, teller)
	now = now.Add(settled)
	teller.well()
	is("none of those told of holds anything: another node's", 0, true, a, b, s)
	tab.replace([]*Pod{pod("a", "ua", "Running"), pod("b", "ub", "Succeeded"), pod("s", "u-old", "Failed")}, teller)
	e.unknown = nil // s is new
	is("b has ended; of s another has", 1, true, a, s)
	n.ended.Store(0)

	e.out, e.unknown = nil, nil // from here on the source tells metadata only, and s is new
	tab.replace([]*Pod{pod("a", "ua", ""), pod("b", "ub", "")}, teller)
	is("s is not told of yet", 0, true, a, b, s)
	now = now.Add(settled - 1)
	teller.well()
	is("nor after a while", 0, true, a, b, s)
	tab.set(pod("s", "u-new", ""))
	is("s is told of", 0, false, a, b, s)
	tab.remove("ns", "b", "ub")
	now = now.Add(settled)
	teller.well()
	is("b has left the watch a moment ago", 0, true, a, b, s)
	now = now.Add(settled)
	is("b has left the watch", 1, false, a, s)
	if n.ended.Load() != 1 {
		t.Errorf("%d counted", n.ended.Load())
	}
	tab.remove("ns", "s", "u-new")
	now = now.Add(fresh)
	teller.ill(Refused, errOutside)
	is("the API server is away: b stays out, and s in", 1, true, a, s)
	now = now.Add(time.Hour)
	is("for an hour", 1, true, a, s)
	teller.well()
	is("it is back, and s has ended", 2, false, a)
	if n.ended.Load() != 2 {
		t.Errorf("%d counted", n.ended.Load())
	}
}
