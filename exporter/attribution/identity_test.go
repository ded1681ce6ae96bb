package attribution

import (
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// learn tells what made the pods that were claimed.
func (r *rig) learn(kind, name string) {
	for i := range r.claims {
		r.claims[i].Kind, r.claims[i].Workload.Name = kind, name
	}
}

// A pod of the same name and with the same labels, as a StatefulSet makes it, goes on where the one
// before it ended.
func TestASuccessorContinuesTheCount(t *testing.T) {
	r := newRig(t, 1, Config{})
	r.claim("db-0", 0, "", 1)
	r.learn("StatefulSet", "db")
	r.picture(0)
	for range 4 {
		r.picture(10 * time.Second)
	}
	r.wants("allocated", allocatedOf, 40, `"db-0"`)
	claims := r.claims
	r.claims = nil
	r.picture(10 * time.Second)
	r.wants("allocated, when it has ended", allocatedOf, 50, `"db-0"`)
	r.claims = claims
	r.picture(10 * time.Second)
	r.wants("allocated, when the next is there", allocatedOf, 50, `"db-0"`)
	r.picture(10 * time.Second)
	r.wants("allocated", allocatedOf, 60, `"db-0"`)
}

// The same when it takes a while to learn what made the successor: until then it has a series of its
// own, and then the one of before goes on.
func TestASuccessorThatIsKnownLater(t *testing.T) {
	r := newRig(t, 1, Config{})
	r.claim("db-0", 0, "", 1)
	r.learn("StatefulSet", "db")
	r.picture(0)
	for range 4 {
		r.picture(10 * time.Second)
	}
	r.claims = nil
	r.picture(10 * time.Second)
	r.picture(10 * time.Second)
	r.claim("db-0", 0, "", 1)
	r.picture(10 * time.Second)
	if n := len(r.last.Workloads); n != 4 {
		t.Errorf("%d series while it is not known what made the successor, want 4", n)
	}
	r.learn("StatefulSet", "db")
	r.picture(10 * time.Second)
	r.wants("allocated", allocatedOf, 60, `"db-0"`)
	if n := len(r.last.Workloads); n != 3 {
		t.Errorf("%d series when it is known, want 3", n)
	}
	for range 2 {
		r.picture(10 * time.Second)
	}
	r.wants("allocated", allocatedOf, 80, `"db-0"`)
	billed := 0.
	for i := range r.last.Usages {
		if r.last.Usages[i].Labels.Get("k8s_workload_name") == "db" {
			billed += number(r.last.Usages[i].Read.Accounting.AllocatedTime)
		}
	}
	if billed != 80 {
		t.Errorf("%v s billed, want 80", billed)
	}
}

// The same where there is no room under the limit when the successor comes, or was none when the one before
// it came: what is told of both, under their name or as type overflow, is what they had.
func TestASuccessorBeyondTheLimit(t *testing.T) {
	for name, others := range map[string]struct{ first, then bool }{ // beside it
		"full when it comes": {}, "full when the one before came": {first: true}, "full all the time": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, Config{Limit: 4 + 1, Keep: 3 * time.Minute}) // four are nobody's
			errors := 0.
			wait := func(n int, db, other bool, made string) {
				r.claims = nil
				if db {
					r.claim("db-0", 0, "", 1)
					r.learn("StatefulSet", made)
				}
				if other {
					r.claim("other", 1, "", 1)
				}
				for range n {
					r.gpus[0].busy, errors = r.gpus[0].busy+1, errors+1
					r.gpus[0].ecc = &errors
					r.picture(10 * time.Second)
				}
			}
			wait(1, false, others.first, "")
			wait(1, true, others.first, "db")
			wait(30, true, others.then, "db")
			wait(3, false, others.then, "")
			wait(3, true, others.then, "")
			wait(10, true, others.then, "db")
			ecc := func(w *telemetry.Workload) metric.Value {
				return w.Holding.ECCErrors[telemetry.ECCErrorTypeUncorrected]
			}
			for what, get := range map[string]func(*telemetry.Workload) metric.Value{"allocated": allocatedOf, "busy": busyOf, "errors": ecc} {
				want := map[string]float64{"allocated": 310 + 120, "busy": 32 + 13, "errors": 32 + 13}[what]
				if got := r.sum(get, `uuid="GPU-0"`, `"db-0"`) + r.sum(get, `uuid="GPU-0"`, `type="overflow"`); got != want {
					t.Errorf("%s: %v told, want %v", what, got, want)
				}
			}
			billed := 0.
			for i := range r.last.Usages {
				if r.last.Usages[i].Labels.Get("k8s_workload_name") == "db" {
					billed += number(r.last.Usages[i].Read.Accounting.AllocatedTime)
				}
			}
			if billed != 430 {
				t.Errorf("%v s billed, want 430", billed)
			}
		})
	}
}

// A pod that has the name of one before it and was made by something else is another workload: nothing
// of the one is counted for the other.
func TestANamesakeIsAnother(t *testing.T) {
	r := newRig(t, 1, Config{})
	r.claim("web", 0, "", 1)
	r.learn("Deployment", "old")
	r.picture(0)
	for range 4 {
		r.picture(10 * time.Second)
	}
	r.claims = nil
	r.picture(10 * time.Second)
	r.picture(10 * time.Second)
	r.claim("web", 0, "", 1)
	r.learn("Job", "new")
	for range 5 {
		r.picture(10 * time.Second)
	}
	r.wants("allocated", allocatedOf, 50, `"old"`)
	r.wants("allocated", allocatedOf, 40, `"new"`)
	for range 60 { // the first one's series go in time, the second's stay
		r.picture(10 * time.Second)
	}
	if r.of(`"old"`) != nil || r.of(`"new"`) == nil {
		t.Error("the wrong series went")
	}
	r.claims = nil
	for range 62 {
		r.picture(10 * time.Second)
	}
	if n := len(r.a.accounts); n != 2 || len(r.a.order) != 2 {
		t.Errorf("%d accounts and %d in order are left, want those of nobody", n, len(r.a.order))
	}
}

// A pod that ends within its hold, before it is known what made it: all it used is told and billed.
func TestAPodEndsWithinItsHold(t *testing.T) {
	r := newRig(t, 1, Config{})
	r.picture(0)
	r.claim("short", 0, "", 1)
	r.picture(5 * time.Second)
	r.gpus[0].busy = 4
	r.picture(5 * time.Second)
	r.claims = nil
	r.picture(5 * time.Second)
	r.wants("allocated, in the hold", allocatedOf, 0, `"short"`)
	for range 5 {
		r.picture(10 * time.Second)
	}
	r.wants("allocated", allocatedOf, 10, `"short"`)
	r.wants("busy", busyOf, 4, `"short"`)
	found := 0.
	for i := range r.last.Usages {
		if r.last.Usages[i].Labels.Get("k8s_namespace_name") == "team" {
			found += number(r.last.Usages[i].Read.Accounting.AllocatedTime)
		}
	}
	if found != 10 {
		t.Errorf("%v s billed, want 10", found)
	}
}

// Labels do not change after the hold, on a part either: not with what is learned, nor with what is forgotten.
func TestLabelsOfAPartAreFrozen(t *testing.T) {
	r := newRig(t, 1, Config{})
	r.gpus[0].parts = []*rigPart{{uuid: "MIG-a", slices: 7}}
	r.claim("a", 0, "MIG-a", 1)
	r.picture(0)
	r.learn("Job", "train")
	r.picture(10 * time.Second)
	for range 3 {
		r.picture(10 * time.Second)
	}
	r.learn("", "")
	r.picture(10 * time.Second)
	r.learn("Job", "other")
	r.picture(10 * time.Second)
	r.wants("allocated", allocatedOf, 60, `partition_uuid="MIG-a"`, `k8s_workload_name="train"`)
	if n := len(r.last.Workloads); n != 5 { // two of nobody on the part, and two on the device
		t.Errorf("%d series", n)
	}
}

// Who was given the whole of a device that is cut into parts holds all of them.
func TestWholeOfADeviceInParts(t *testing.T) {
	r := newRig(t, 1, Config{Hold: -1})
	r.gpus[0].parts = []*rigPart{{uuid: "MIG-a", slices: 3}, {uuid: "MIG-b", slices: 3}}
	r.claim("a", 0, "", 1)
	r.picture(0)
	r.picture(7 * time.Second)
	if got := r.sum(allocatedOf, `"a"`); got != 7 {
		t.Errorf("%v s of it allocated, want all 7", got)
	}
	if got := r.last.Devices[0].Owned.Get("k8s_pod_name"); got != "a" {
		t.Errorf("gauges of the device name %q", got)
	}
	r.claims = nil
	r.claim("b", 0, "MIG-a", 1)
	r.picture(time.Second)
	if got := r.last.Devices[0].Owned.Get("k8s_pod_name"); got != "" {
		t.Errorf("gauges of the device name %q, which holds a part", got)
	}
	for _, o := range r.last.Owners {
		part := o.Labels.Get("gpu_partition_uuid")
		for i, name := range []string{"none", "exclusive", "shared"} {
			if _, ok := o.Read.Ownership.Info[i].Get(); ok && name != map[string]string{"": "shared", "MIG-a": "exclusive", "MIG-b": "none"}[part] {
				t.Errorf("%q is told as %s", part, name)
			}
		}
	}
	if len(r.last.Owners) != 3 {
		t.Errorf("%d owners, want one of the device and one of each part", len(r.last.Owners))
	}
}

// A pod that does nothing is told as working 0 s, while the time it holds its GPU goes up.
func TestAnIdlePodHoldsItsDevice(t *testing.T) {
	r := newRig(t, 1, Config{})
	r.claim("idle", 0, "", 1)
	r.picture(0)
	for i := range 20 {
		r.gpus[0].joules += 1500
		r.picture(15 * time.Second)
		if i < 2 {
			continue
		}
		r.wants("busy", busyOf, 0, `"idle"`)
		r.wants("allocated", allocatedOf, float64(15*(i+1)), `"idle"`)
		r.wants("energy", energyOf, float64(1500*(i+1)), `"idle"`)
	}
}

// A process may be seen in a pod before the kubelet says which of its containers holds the device: the
// pod is one workload all the same, and has the container's name when that is known.
func TestAContainerThatIsKnownLater(t *testing.T) {
	r := newRig(t, 1, Config{})
	r.claim("web", 0, "", 1)
	r.picture(0)
	before := len(r.last.Workloads)
	r.claims[0].Container = "main"
	for range 4 {
		r.picture(10 * time.Second)
	}
	if n := len(r.last.Workloads); n != before {
		t.Errorf("%d series, want %d", n, before)
	}
	r.wants("allocated", allocatedOf, 40, `"web"`, `k8s_container_name="main"`)
}
