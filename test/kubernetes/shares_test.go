package kubernetes

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/gpumeter/gpumeter/test/expect"
)

func (r *room) replicas(t *testing.T) {
	for n, name := range []string{"serve-a", "serve-b"} {
		r.whole.prefer(uuid(1) + []string{"::0", "::1"}[n])
		r.run(t, newPod("ml", name, "sleep", "nvidia.com/gpu"))
	}
	r.exporter.shows(t,
		`gpu_owner_info{gpu_uuid="`+uuid(1)+`",gpu_sharing="shared",k8s_pod_name=""} == 1`,
		`gpu_power_draw_watts{gpu_index="1",k8s_pod_name="",k8s_workload_name=""} > 0`,
		`gpu_workload_allocated_time_seconds_total{gpu_uuid="`+uuid(1)+`",k8s_pod_name="serve-a"}`,
		`gpu_workload_allocated_time_seconds_total{gpu_uuid="`+uuid(1)+`",k8s_pod_name="serve-b"}`,
		`!gpu_owner_info{gpu_uuid="`+uuid(0)+`",k8s_pod_name!=""}`,
	)
}

// processes of two pods that share a GPU, two processes each.
func (r *room) processes(t *testing.T) {
	const gigabyte = 1 << 30
	var lines []string
	for n, name := range []string{"fork-a", "fork-b"} {
		r.whole.prefer(uuid(1) + []string{"::0", "::1"}[n])
		p := r.run(t, newPod("ml", name, "fork", "nvidia.com/gpu"))
		await(t, "both processes of "+name, func(context.Context) error {
			pids := processes(t, p)
			if len(pids) != 2 {
				return fmt.Errorf("there are %v", pids)
			}
			for _, pid := range pids {
				lines = append(lines, fmt.Sprintf("process 1 %d %d %d", pid, (n+1)*gigabyte, 10))
			}
			return nil
		})
	}
	r.gpus.tell(t, append(lines, fmt.Sprintf("process 1 %d %d %d", os.Getpid(), 3*gigabyte, 10))...)
	defer r.gpus.tell(t)
	of := func(who string) string {
		return `gpu_workload_memory_usage_bytes{gpu_uuid="` + uuid(1) + `",` + who + `}`
	}
	r.exporter.shows(t,
		fmt.Sprint(of(`k8s_namespace_name="ml",k8s_pod_name="fork-a",k8s_container_name="main"`), " == ", 2*gigabyte),
		fmt.Sprint(of(`k8s_namespace_name="ml",k8s_pod_name="fork-b",k8s_container_name="main"`), " == ", 4*gigabyte),
		`!gpu_power_draw_watts{gpu_index="1",k8s_pod_name!=""}`,
	)
	page, err := r.exporter.get(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := expect.Sum(page, of(`gpu_workload_type=~".+"`))
	used, err2 := expect.Value(page, `gpu_memory_usage_bytes{gpu_index="1"}`)
	if err != nil || err2 != nil || sum != used || used < 9*gigabyte {
		t.Errorf("all workloads use %v of the GPU's memory, %v; %v, %v is in use", sum, err, used, err2)
	}
}

func (r *room) instance(t *testing.T) {
	r.run(t, newPod("lab", "notebook", "sleep", "nvidia.com/mig-1g.10gb"))
	const who = `k8s_namespace_name="lab",k8s_pod_name="notebook",k8s_container_name="main"`
	r.exporter.shows(t,
		`gpu_owner_info{gpu_partition_uuid="`+mig+`",`+who+`,gpu_sharing="exclusive"} == 1`,
		`gpu_partition_memory_limit_bytes{gpu_index="2",gpu_partition_uuid="`+mig+`",`+who+`} > 0`,
		`gpu_partition_memory_limit_bytes{gpu_index="2",gpu_partition_profile="3g.40gb",k8s_pod_name=""} > 0`,
		`gpu_power_draw_watts{gpu_index="2",k8s_pod_name=""} > 0`,
	)
}
