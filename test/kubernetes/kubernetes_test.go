package kubernetes

import (
	"os"
	"path/filepath"
	"testing"
)

// room is all that the stories are told in.
type room struct {
	*cluster
	gpus     driver
	token    string
	exporter *exporter
	whole    *plugin
}

func TestKubernetes(t *testing.T) {
	if os.Getenv(stage) != inside {
		t.Skip("no Kubernetes can run here: ", missing())
	}
	r := &room{cluster: startCluster(t)}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	r.gpus = buildDriver(t)
	r.gpus.tell(t)
	r.token = r.admit(t)
	r.whole = startPlugin(t, "nvidia.com/gpu", uuid(0), uuid(1)+"::0", uuid(1)+"::1")
	startPlugin(t, "nvidia.com/mig-1g.10gb", mig)
	r.exporter = r.serve(t, r.gpus, 9450, asksAPI(r.token)...)
	t.Run("a pod owns the GPU it was given whole, for as long as it is there", r.wholeGPU)
	t.Run("a pod of a Job of a CronJob is the CronJob's", r.cronJob)
	t.Run("a pod that has completed owns nothing", r.completed)
	t.Run("two pods share a GPU by its replicas, and neither's labels are on it", r.replicas)
	t.Run("processes are their pods', and add up to the GPU", r.processes)
	t.Run("a pod owns the MIG instance it was given, and not its GPU", r.instance)
	t.Run("a scrape asks nobody", r.scrapes)
	t.Run("a pod owns the GPU of its claim", r.claimed)
	t.Run("one watch is open at the API server, and nothing is asked for but what is needed", r.watches)
	t.Run("the kubelet's HTTPS port tells what pods are", r.kubeletHTTPS)
	t.Run("nothing is lost while the kubelet starts again", r.kubeletRestart)
	t.Run("nothing is lost while the API server is away", r.apiRestart)
	t.Run("the kubelet's Pods API tells what pods are, and the API server is left alone", r.podsAPI)
	t.Run("the chart", r.chart)
}
