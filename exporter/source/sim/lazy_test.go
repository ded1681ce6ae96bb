package sim

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Readers that looked at different times see the same when they look at the same time, also after
// cycles that one of them skipped.
func TestLookingChangesNothing(t *testing.T) {
	often, a := start(t, allModels(), 5)
	seldom, b := start(t, allModels(), 5)
	for i := range a {
		if inBetween(i) {
			continue
		}
		for at := time.Duration(0); at < 50*time.Hour; at += 7*time.Minute + 1234567*time.Microsecond {
			often.moveTo(at)
			x := read(t, a[i])
			if (at/(7*time.Minute))%97 != 3 {
				continue
			}
			seldom.moveTo(at)
			if y := read(t, b[i]); !reflect.DeepEqual(x, y) {
				t.Fatalf("%s after %v: the one who looked often sees\n%+v\nthe other\n%+v", a[i].Identity().Model, at, x, y)
			}
		}
	}
}

// Another seed is another node, the same seed the same.
func TestSeed(t *testing.T) {
	look := func(seed uint64) (string, *telemetry.Device) {
		c, d := start(t, "h100x1", seed)
		c.moveTo(3 * time.Hour)
		return d[0].Identity().UUID, read(t, d[0])
	}
	uuid, x := look(1)
	if again, y := look(1); again != uuid || !reflect.DeepEqual(x, y) {
		t.Error("the same seed made two nodes")
	}
	if other, y := look(2); other == uuid || reflect.DeepEqual(x, y) {
		t.Error("two seeds made the same node")
	}
}

// Nodes of two seeds have no pod in common, and those that serve belong to the same deployments.
func TestSeedsShareNoPod(t *testing.T) {
	pods, owners := map[string]int{}, map[string]int{}
	for seed := range uint64(20) {
		for _, node := range []string{"h100x8", "h100migx1"} {
			_, r, tenants := startEngines(t, node, seed)
			for _, d := range r.(*reader).devices {
				d.(*device).now = func() time.Time { return noon.Add(working) }
				read(t, d)
			}
			mine := map[string]bool{}
			for _, one := range tenants.List() {
				mine[one.Namespace+"/"+one.Pod] = true
				owners[one.Namespace+"/"+one.Kind+"/"+one.Name]++
			}
			for pod := range mine {
				if pods[node+" "+pod]++; pods[node+" "+pod] > 1 {
					t.Errorf("%s of seed %d has the pod %s, and so has one of another", node, seed, pod)
				}
			}
		}
	}
	if len(pods) < 60 || owners["team-serving/Deployment/chat-b"] < 20 {
		t.Errorf("%d pods of %v", len(pods), owners)
	}
}

// A clock set back reduces nothing; when it is right again the counters go on.
func TestTimeGoesBack(t *testing.T) {
	c, devices := start(t, "h100x1", 1)
	c.moveTo(30 * time.Hour)
	x := read(t, devices[0])
	for _, at := range []time.Duration{29 * time.Hour, 0, -time.Hour} {
		c.moveTo(at)
		if y := read(t, devices[0]); !reflect.DeepEqual(x, y) {
			t.Errorf("set back to %v, it reads\n%+v\nbefore\n%+v", at, y, x)
		}
	}
	c.moveTo(31 * time.Hour)
	if y := read(t, devices[0]); number(t, y.Power.Energy) <= number(t, x.Power.Energy) {
		t.Error("energy stands still")
	}
}

// The longest time a Duration can say is skipped, not lived through, and no counter wraps.
func TestLongGap(t *testing.T) {
	c, devices := start(t, strings.Join(modelIDs(), "x1,")+"x1", 1)
	for _, d := range devices {
		c.t = noon.Add(math.MaxInt64)
		x := read(t, d) // tick by tick it would not end
		seconds := time.Duration(math.MaxInt64).Seconds()
		watts := number(t, x.Power.Energy) / seconds
		busy, told := x.Utilization.BusyTime.Get()
		if busy /= seconds; !told {
			_, busy = d.(*device).physics.activeAll(engine)
			busy /= seconds
		}
		b := d.(*device).board
		if watts < float64(b.idle) || watts > float64(b.enforced()) || busy < 0.3 || busy > 1 {
			t.Errorf("%s: a mean of %v W and %v busy", b.id, watts, busy)
		}
		everyNumber(x, func(s series, n float64) {
			if s.desc.Kind == metric.KindCounter && (n < 0 || math.IsInf(n, 0) || math.IsNaN(n)) {
				t.Errorf("%s: %v is %v", b.id, s, n)
			}
		})
	}
}

// At the first tick of a cycle, the peak is still one of the last cycle's minute.
func TestPeakOverTheCycle(t *testing.T) {
	c, devices := start(t, "b200x1", 1)
	want := 0.0
	for tick := time.Duration(cycleTicks - len(minute{})); tick <= cycleTicks; tick++ {
		c.moveTo(tick * time.Second)
		x := read(t, devices[0])
		want = max(want, number(t, x.Power.Draw))
		if got := number(t, x.Power.Peak); tick == cycleTicks && got != want {
			t.Errorf("a peak of %v W; in the minute there were %v", got, want)
		}
	}
}

// Boards of one job work together, and their readings differ all the same.
func TestNeighbours(t *testing.T) {
	c, devices := start(t, "h100x4", 1)
	c.moveTo(10 * time.Minute)
	first := read(t, devices[0])
	for _, d := range devices[1:] {
		x := read(t, d)
		if number(t, x.Memory.Usage) != number(t, first.Memory.Usage) {
			t.Error("the memory of one job differs from board to board")
		}
		if number(t, x.Power.Energy) == number(t, first.Power.Energy) || number(t, x.Utilization.BusyTime) == number(t, first.Utilization.BusyTime) {
			t.Error("two boards drew the same energy or were busy for the same time")
		}
	}
}

// Where Slurm starts the trainings, all boards of one have its job and no pod; what serves are pods still.
func TestSlurmsJobs(t *testing.T) {
	_, r, tenants := startEngines(t, "h100x8,slurm", 1)
	for _, d := range r.(*reader).devices {
		d.(*device).now = func() time.Time { return noon.Add(working) }
		read(t, d)
	}
	jobs, pods := map[string]int{}, map[string]int{}
	for _, one := range tenants.List() {
		if (one.Job == "") == (one.Pod == "") || (one.Job == "") != (one.Account == "" || one.User == "" || one.Queue == "") {
			t.Errorf("%+v; want a job with its account, or a pod", one)
		}
		jobs[one.Job]++
		pods[one.Namespace]++
	}
	if len(jobs) != 2 || jobs[""] != 4 || pods["team-serving"] != 4 || len(pods) != 2 {
		t.Errorf("jobs %v, namespaces %v; want one job of four boards, and four that serve", jobs, pods)
	}
	if _, err := New(Config{Node: "slurm"}); err == nil || !strings.Contains(err.Error(), "has no device") {
		t.Errorf("%v; want that it has no device", err)
	}
}
