package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/test/expect"
	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// shows waits until a page has all that is expected.
func (e *exporter) shows(t testing.TB, texts ...string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		page := e.get(t, "/metrics", "Accept", "text/plain")
		lacks, err := expect.Lacking(page, texts...)
		if err != nil {
			t.Fatal(err)
		}
		if len(lacks) == 0 {
			return
		}
		if time.Now().After(deadline) {
			for line := range strings.Lines(page) {
				if strings.HasPrefix(line, "gpu_owner_info") || strings.HasPrefix(line, "gpu_workload_memory") {
					lacks = append(lacks, line)
				}
			}
			t.Fatalf("the page never has all that is expected:\n%s", strings.Join(lacks, "\n"))
		}
	}
}

// Jobs of a real Slurm own the GPUs they were given, with the names that the shipped prolog writes; and
// without it, where their processes are, by the control groups that Slurm puts them into.
func TestSlurm(t *testing.T) {
	n := startSlurm(t)
	library, config := fakeDriver(t)
	const gib = 1 << 30
	tell := func(processes ...string) { // GPU, PID, GiB
		lines := []string{"gpus 4"}
		for _, p := range processes {
			var gpu, pid string
			var size int
			if _, err := fmt.Sscan(p, &gpu, &pid, &size); err != nil {
				t.Fatalf("%s: %v", p, err)
			}
			lines = append(lines, fmt.Sprintf("process %s %s %d", gpu, pid, size*gib))
		}
		fakenvml.Configure(t, config, lines...)
	}
	tell()
	env := []string{"FAKENVML_CONFIG=" + config, "GPUMETER_MAX_AGE=1ms", "GPUMETER_METRICS_INCLUDE=processes"}
	mapped := serve(t, env, "--nvml.library", library, "--slurm.job-mapping-dir", n.jobs)
	bare := serve(t, env, "--nvml.library", library)

	// A job of two GPUs works in its batch step on one, and in a step of srun on the other.
	train := n.submit("nobody", "--account=physics", "--gres=gpu:2")
	gpus := n.gpus(train)
	if len(gpus) != 2 {
		t.Fatalf("job %s has the GPUs %v", train, gpus)
	}
	batch, step := n.pid(train, "batch"), n.pid(train, "0")
	tell(gpus[0]+" "+batch+" 1", gpus[1]+" "+step+" 2")
	for i, gpu := range gpus {
		at := fmt.Sprintf(`gpu_uuid=~".*%s",slurm_job_id="%s"`, gpu, train)
		memory := fmt.Sprintf(`gpu_workload_memory_usage_bytes{%s} == %d`, at, (i+1)*gib)
		mapped.shows(t, fmt.Sprintf(`gpu_owner_info{%s,slurm_user="nobody",slurm_account="physics",slurm_partition="gpu-long",gpu_sharing="exclusive"} == 1`, at),
			fmt.Sprintf(`gpu_power_draw_watts{gpu_index="%s",slurm_job_id="%s",slurm_user="nobody"} > 0`, gpu, train), memory)
		bare.shows(t, fmt.Sprintf(`gpu_owner_info{%s,slurm_user="",slurm_account="",gpu_sharing="exclusive"} == 1`, at), memory)
	}
	mapped.shows(t, fmt.Sprintf(`gpu_process_memory_usage_bytes{process_pid="%s",process_executable_name="sleep"} == %d`, step, 2*gib))
	const about = `"account": "physics", "partition": "gpu-long", "qos": "", "name": "", "sluid": ""}`
	if got, want := n.mapped(), fmt.Sprintf("%[2]s: %[1]s\n%[3]s: %[1]s\njobs/%[1]s.json: {\"user\": \"nobody\", %[4]s", train, gpus[0], gpus[1], about); got != want {
		t.Errorf("the prolog wrote\n%s\nwant\n%s", got, want)
	}

	// Two jobs have a share each of one GPU, and both work on it. Nothing a user calls things by breaks anything.
	a, b := n.submit("", `--account=bio"x\`, "--gres=shard:1"), n.submit("nobody", "--account=chem", "--gres=shard:1", "--job-name=a\"\n} 1")
	shared := n.gpus(a)[0]
	if got := n.gpus(b)[0]; got != shared {
		t.Fatalf("jobs %s and %s have shares of the GPUs %s and %s", a, b, shared, got)
	}
	tell(shared+" "+n.pid(a, "batch")+" 1", shared+" "+n.pid(b, "batch")+" 2", shared+" "+n.pid(b, "0")+" 4")
	for _, e := range []*exporter{mapped, bare} {
		e.shows(t, fmt.Sprintf(`gpu_owner_info{gpu_uuid=~".*%s",gpu_sharing="shared",slurm_job_id=""} == 1`, shared),
			fmt.Sprintf(`gpu_workload_memory_usage_bytes{gpu_uuid=~".*%s",slurm_job_id="%s"} == %d`, shared, a, gib),
			fmt.Sprintf(`gpu_workload_memory_usage_bytes{gpu_uuid=~".*%s",slurm_job_id="%s"} == %d`, shared, b, 6*gib))
	}
	mapped.shows(t, fmt.Sprintf(`gpu_workload_memory_usage_bytes{slurm_job_id="%s",slurm_user="root",slurm_account="biox"}`, a))

	// The first job ends. Its series stay for those who count, but it holds nothing; what it had is given to
	// the elements of an array, each a job of its own.
	n.run("scancel", train)
	array := n.submit("nobody", "--account=physics", "--gres=gpu:1", "--array=1-2")
	var on []string
	for _, job := range n.elements(array) {
		gpu := n.gpus(job)[0]
		on = append(on, gpu+" "+n.pid(job, "batch")+" 3")
		tell(on...)
		for _, e := range []*exporter{mapped, bare} {
			e.shows(t, fmt.Sprintf(`gpu_owner_info{gpu_uuid=~".*%s",slurm_job_id="%s",gpu_sharing="exclusive"} == 1`, gpu, job),
				fmt.Sprintf(`gpu_workload_memory_usage_bytes{gpu_uuid=~".*%s",slurm_job_id="%s"} == %d`, gpu, job, 3*gib))
		}
	}
	for _, e := range []*exporter{mapped, bare} {
		e.shows(t, fmt.Sprintf(`gpu_workload_allocated_time_seconds_total{slurm_job_id="%s"} >= 0`, train),
			fmt.Sprintf(`!gpu_workload_memory_usage_bytes{slurm_job_id="%s"}`, train), fmt.Sprintf(`!gpu_owner_info{slurm_job_id="%s"}`, train))
	}

	// All end, and the epilog leaves nothing behind.
	n.run("scancel", array, a, b)
	tell()
	n.wait("the epilog has taken all jobs out", func() bool { return n.mapped() == "" })
	for _, e := range []*exporter{mapped, bare} {
		e.shows(t, `gpu_owner_info{gpu_sharing="none"} == 1`, `!gpu_owner_info{slurm_job_id!=""}`, `!gpu_power_draw_watts{slurm_job_id!=""}`)
	}
}
