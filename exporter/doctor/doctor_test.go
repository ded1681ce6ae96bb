package doctor

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/attribution"
	"github.com/gpumeter/gpumeter/exporter/attribution/kubernetes"
	"github.com/gpumeter/gpumeter/exporter/attribution/slurm"
	"github.com/gpumeter/gpumeter/exporter/diagnosis"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func value(n float64) (v metric.Value) { v.Set(n); return v }
func none(why *metric.Reason) (v metric.Value) {
	v.Fail(why)
	return v
}

var (
	at    = attribution.Thing{Device: "GPU-a"}
	train = attribution.Workload{Type: telemetry.WorkloadTypeKubernetes, Namespace: "ml", Pod: "train-0", Container: "pytorch", Kind: "Job", Name: "train"}
	serve = attribution.Workload{Type: telemetry.WorkloadTypeKubernetes, Namespace: "ml", Pod: "serve"}
	lost  = attribution.Workload{Type: telemetry.WorkloadTypeUnattributed}
)

func picture() *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		Taken:   time.Unix(1_800_000_000, 0).UTC(),
		Devices: []snapshot.Device{{Identity: &telemetry.Identity{UUID: "GPU-a", Model: "H100", Vendor: "nvidia"}}},
		Health:  snapshot.Health{Sources: []snapshot.SourceHealth{{Name: "nvml", State: telemetry.SourceStateServing, Devices: 1}}},
	}
	r := &s.Devices[0].Read
	r.Power.Draw.Set(300)
	r.Power.Energy.Fail(metric.Unsupported)
	return s
}

func explained(sharing telemetry.Sharing, holders []attribution.Claim, listed bool, uses ...attribution.Use) []attribution.Explanation {
	e := attribution.Explanation{Owner: attribution.Owner{Thing: at, Sharing: sharing, Holders: holders}, Listed: listed, Uses: uses}
	for _, u := range uses {
		e.MemoryWhy, e.BusyWhy = u.Memory.Why(), u.Busy.Why()
	}
	return []attribution.Explanation{e}
}

// What is said of a device, for each way in which its owner is known or not.
func TestReportSaysWhoseAndWhyNot(t *testing.T) {
	claim := func(w attribution.Workload, share float64) attribution.Claim {
		return attribution.Claim{Thing: at, Workload: w, Share: share, How: "pod resources", Detail: attribution.Detail{Chain: "Job/train"}}
	}
	use := func(w attribution.Workload, how string, busy metric.Value) attribution.Use {
		return attribution.Use{Thing: at, Workload: w, PID: 501, How: how, Memory: value(2 << 30), Busy: busy}
	}
	for name, c := range map[string]struct {
		facts Facts
		want  []string // in the text
		not   []string
	}{
		"owned": {
			Facts{Explained: explained(telemetry.SharingExclusive, []attribution.Claim{claim(train, 1)}, true, use(train, "cgroup of the container", value(12.5)))},
			[]string{"owner pod ml/train-0 (pytorch) of Job train [pod resources]; created by Job/train\n", "process 501: pod ml/train-0 (pytorch) of Job train [cgroup of the container]; 2.00 GiB; 12.5 s busy\n", "Nothing needs to be changed.\n"},
			[]string{"share"},
		},
		"shared, and the driver measures no process": {
			Facts{Explained: explained(telemetry.SharingShared, []attribution.Claim{claim(serve, 0.5), claim(train, 0.5)}, true, use(serve, "cgroup of the pod", none(metric.Unsupported)))},
			[]string{"owner pod ml/serve, share 0.5 [pod resources]", "busy time by process is not available: not supported\n", "cannot be split between the owners; they are unattributed\n"},
			nil,
		},
		"idle":           {Facts{Explained: explained(telemetry.SharingNone, nil, true)}, []string{"not allocated to any pod or job; no process uses it\n", "Nothing needs to be changed."}, nil},
		"nothing listed": {Facts{Explained: explained(telemetry.SharingNone, nil, false)}, []string{"not allocated to any pod or job; the driver returned no process list\n"}, nil},
		"a process that is not in /proc": {
			Facts{Explained: explained(telemetry.SharingNone, nil, true, use(lost, NotSeen, value(0)))},
			[]string{"process 501: owner unknown, PID not in /proc", "1 process has no known owner", "  warning  process-unknown\n           The owner of a process is not known: PID not in /proc\n           What to do: The driver's PIDs are not in this /proc: mount the host's"},
			[]string{"Nothing needs"},
		},
		"one of several processes has ended meanwhile": {
			Facts{Explained: explained(telemetry.SharingNone, nil, true, use(lost, NotSeen, value(0)), use(train, "cgroup of the container", value(1)))},
			[]string{"process 501: owner unknown, PID not in /proc", "Nothing needs to be changed."},
			nil,
		},
		"a metric the device has not": {Facts{}, []string{"absent, not supported: gpu_energy_joules_total\n"}, []string{"gpu_power_draw_watts", "not read"}},
		"attribution is off":          {Facts{Off: true}, []string{"  info     attribution-off\n", "Nothing needs to be changed."}, nil},
		"a stray": {
			Facts{Strays: []Stray{{Holder: "pod ml/x (c)", Resource: "nvidia.com/gpu", ID: "GPU-\x1b[31m", Names: "UUID GPU-?"}}},
			[]string{"pod ml/x (c) holds nvidia.com/gpu GPU-\uFFFD[31m (UUID GPU-?): no device here has this ID\n", strayAdvice},
			[]string{"\x1b"},
		},
		"a stray that a virtual machine has": {
			Facts{Strays: []Stray{{Holder: "pod vms/a (compute)", Resource: "nvidia.com/H100", ID: "0000:65:00.0", Names: "PCI address 0000:65:00.0", Driver: "vfio-pci"}}},
			[]string{"0000:65:00.0 (PCI address 0000:65:00.0): given to a virtual machine (driver vfio-pci), not read here\n", "Nothing needs to be changed."},
			[]string{"no device here", "allocation-unknown"},
		},
		"one that is asked and fails": {
			Facts{Witnesses: []Witness{{Name: "podresources", Tells: "who", State: "denied", Err: "permission denied", Read: time.Unix(1_799_999_940, 0), Advice: "Run as uid 0."}}},
			[]string{"podresources  denied   who; last response 1m0s ago; permission denied\n", "  warning  attribution-podresources-denied\n", "What to do: Run as uid 0.\n"},
			nil,
		},
	} {
		c.facts.Snapshot, c.facts.Machine = picture(), new(diagnosis.Machine)
		r := New(c.facts)
		var b strings.Builder
		if err := r.Text(&b); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: no %q in\n%s", name, want, b.String())
			}
		}
		for _, not := range c.not {
			if strings.Contains(b.String(), not) {
				t.Errorf("%s: %q in\n%s", name, not, b.String())
			}
		}
	}
}

// The lines of a MIG instance are indented below it, the device as a whole repeats nothing, and no line of absent
// metrics is longer than a terminal.
func TestReport_Partitions(t *testing.T) {
	s := picture()
	r := &s.Devices[0].Read
	r.Partitions = []telemetry.Part[telemetry.Partition]{{Labels: telemetry.PartitionAttributes{PartitionUUID: "MIG-1", PartitionID: "1/0", PartitionProfile: "3g.40gb"}.Labels()}}
	for i := range r.Clock.Frequency {
		r.Clock.Frequency[i].Fail(metric.Unsupported)
		r.Clock.Limit[i].Fail(metric.Unsupported)
		r.Clock.Application[i].Fail(metric.Unsupported)
	}
	r.Memory.Usage.Fail(metric.Unsupported)
	r.Memory.Limit.Fail(metric.Unsupported)
	owned := attribution.Claim{Workload: serve, Share: 1, How: "pod resources"}
	part := attribution.Thing{Device: "GPU-a", Partition: "MIG-1"}
	out := New(Facts{Snapshot: s, Machine: new(diagnosis.Machine), Explained: []attribution.Explanation{
		{Owner: attribution.Owner{Thing: part, Sharing: telemetry.SharingExclusive, Holders: []attribution.Claim{owned}}, Listed: true},
		{Owner: attribution.Owner{Thing: at, Sharing: telemetry.SharingExclusive, Holders: []attribution.Claim{owned}}, Listed: true},
	}})
	var b strings.Builder
	if err := out.Text(&b); err != nil {
		t.Fatal(err)
	}
	want := `
0  H100  GPU-a
   1/0 3g.40gb MIG-1
      owner pod ml/serve [pod resources]
   absent, not supported: gpu_clock_frequency_hertz gpu_clock_limit_hertz gpu_clock_application_hertz
   gpu_memory_limit_bytes gpu_memory_usage_bytes gpu_energy_joules_total
`
	if !strings.Contains(b.String(), want) {
		t.Errorf("no %s\nin\n%s", want, b.String())
	}
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(line)); n > width+1 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
}

// Findings are part of the JSON report, and a list also where there is none.
func TestReport_JSONFindings(t *testing.T) {
	for name, c := range map[string]struct {
		facts Facts
		want  string
	}{
		"none":    {Facts{Machine: new(diagnosis.Machine)}, `"findings":[]`},
		"warning": {Facts{Machine: new(diagnosis.Machine), Witnesses: []Witness{{Name: "api", Tells: "pods", State: "denied", Advice: "Grant it."}}}, `"findings":[{"id":"attribution-api-denied","severity":"warning","message":"provider api (pods) is denied","advice":"Grant it."}]`},
	} {
		c.facts.Snapshot = picture()
		text, err := json.Marshal(New(c.facts))
		if err != nil || !strings.Contains(string(text), c.want) {
			t.Errorf("%s: %v, no %s in %s", name, err, c.want, text)
		}
	}
}

// pods is a cluster of which a test says how it is.
type pods struct {
	sources map[kubernetes.Source]kubernetes.Health
	by      kubernetes.Source
}

func (p pods) Sources() map[kubernetes.Source]kubernetes.Health { return p.sources }
func (p pods) Pods() (kubernetes.Source, int, kubernetes.Health) {
	return p.by, 3, kubernetes.Health{}
}
func (p pods) Holdings() *kubernetes.Holdings { return new(kubernetes.Holdings) }

// One source of what pods are is enough: what others would need is no advice then.
func TestAdviceIsOnWhatIsMissing(t *testing.T) {
	denied := kubernetes.Health{Reason: kubernetes.Denied, Err: "forbidden"}
	for name, c := range map[string]struct {
		pods
		want map[string]string // by witness; the first words of its advice
	}{
		"nobody tells what pods are": {
			pods{map[kubernetes.Source]kubernetes.Health{kubernetes.PodResources: {}, kubernetes.APIServer: denied, kubernetes.KubeletPods: {Reason: kubernetes.Missing}, kubernetes.Slices: denied}, ""},
			map[string]string{"podresources": "", "api": "The API server denies the list of pods: grant list and watch on pods", "pods": "", "slices": ""},
		},
		"the kubelet does": {
			pods{map[kubernetes.Source]kubernetes.Health{kubernetes.PodResources: denied, kubernetes.APIServer: denied, kubernetes.KubeletPods: {}}, kubernetes.KubeletPods},
			map[string]string{"podresources": "The kubelet's socket cannot be opened: run as uid 0", "api": "", "pods": ""},
		},
		"the API server is away": {
			pods{map[kubernetes.Source]kubernetes.Health{kubernetes.APIServer: {Reason: kubernetes.Hanging}}, ""},
			map[string]string{"api": "The API server does not respond"},
		},
	} {
		all := Kubernetes(c.pods)
		if len(all) != len(c.sources) {
			t.Errorf("%s: %d witnesses, want %d", name, len(all), len(c.sources))
		}
		for _, w := range all {
			if want := c.want[w.Name]; !strings.HasPrefix(w.Advice, want) || want == "" && w.Advice != "" {
				t.Errorf("%s: on %s %q, want %q", name, w.Name, w.Advice, want)
			}
			if w.Tells == "" {
				t.Errorf("%s: what %s tells is not said", name, w.Name)
			}
			if w.Name == string(c.by) && w.Knows != "3 pods" {
				t.Errorf("%s: %s knows %q", name, w.Name, w.Knows)
			}
		}
	}
}

// Who waits for everybody's answer does not wait for one that nobody asks.
func TestNotNeeded(t *testing.T) {
	waiting := kubernetes.Health{Reason: kubernetes.Waiting}
	for name, c := range map[string]struct {
		by          kubernetes.Source
		api, slices string
	}{
		"nobody has told what pods are": {"", "waiting", WitnessSpare},
		"the kubelet has":               {kubernetes.KubeletPods, WitnessSpare, WitnessSpare},
	} {
		for _, w := range Kubernetes(pods{map[kubernetes.Source]kubernetes.Health{kubernetes.PodResources: waiting, kubernetes.APIServer: waiting, kubernetes.Slices: waiting}, c.by}) {
			if want := map[string]string{"podresources": "waiting", "api": c.api, "slices": c.slices}[w.Name]; w.State != want {
				t.Errorf("%s: %s is %q, want %q", name, w.Name, w.State, want)
			}
		}
	}
	if got := spare(kubernetes.Slices, true, true); got {
		t.Error("slices are not needed, though a device of DRA is held")
	}
}

// A machine without a kubelet is in order.
func TestNoKubelet(t *testing.T) {
	if w := NoKubelet("/kubelet"); w.State != "missing" || w.Advice != "" || !strings.Contains(w.Err, "/kubelet") {
		t.Errorf("%+v", w)
	}
}

func TestSlurm(t *testing.T) {
	looked := time.Unix(1_800_000_000, 0)
	for name, c := range map[string]struct {
		is   slurm.State
		want Witness
	}{
		"not looked at yet":  {slurm.State{Path: "/jobs"}, Witness{State: "waiting"}},
		"in order":           {slurm.State{Path: "/jobs", Looked: looked, Jobs: 1}, Witness{State: "ok", Knows: "1 GPU allocated to a job"}},
		"a file is broken":   {slurm.State{Path: "/jobs", Looked: looked, Err: "/jobs/0:1: x"}, Witness{State: "broken", Knows: "0 GPUs allocated to jobs", Err: "/jobs/0:1: x", Advice: "Slurm's job mapping cannot be read in full: find out what writes to /jobs."}},
		"others may write":   {slurm.State{Path: "/jobs", Looked: looked, Jobs: 2, Shared: "owned by UID 1002"}, Witness{State: "ok", Knows: "2 GPUs allocated to jobs", Err: "/jobs is owned by UID 1002", Advice: "Users other than root can write Slurm's job mapping, so only root's files are read: chown root /jobs && chmod 0755 /jobs"}},
		"no driver lists it": {slurm.State{Path: "/jobs", Looked: looked, Jobs: 2, Absent: []string{"7", "8.1"}}, Witness{State: "ok", Knows: "2 GPUs allocated to jobs", Err: "unknown GPU indexes: 7 8.1", Advice: "Slurm allocates GPUs that are not read here: map its indexes to devices or MIG instances with --slurm.gpu."}},
	} {
		c.want.Name, c.want.Tells, c.want.Read = "slurm", "GPUs of Slurm jobs", c.is.Looked
		if got := Slurm(c.is); got != c.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, c.want)
		}
	}
}

func TestHandler(t *testing.T) {
	h := Handler(func(context.Context) Report { return New(Facts{Snapshot: picture()}) })
	for _, target := range []string{"/", "/?format=json"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		var r Report
		err := json.Unmarshal(w.Body.Bytes(), &r)
		if json := strings.Contains(target, "json"); json != (err == nil) || json && r.Devices[0].UUID != "GPU-a" || !json && !strings.HasPrefix(w.Body.String(), "SOURCE") {
			t.Errorf("%s: %v\n%s", target, err, w.Body)
		}
	}
}
