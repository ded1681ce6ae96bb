package kubernetes

import (
	"slices"
	"testing"
	"time"
)

func TestChain(t *testing.T) {
	by := func(version, kind, name string) []reference {
		return []reference{{APIVersion: version, Kind: kind, Name: name, Controller: true}}
	}
	created := time.Date(2026, 11, 21, 0, 0, 9, 0, time.UTC)
	for name, c := range map[string]struct {
		owners      []reference
		labels      map[string]string
		annotations map[string]string
		pod         string
		want        []Owner
	}{
		"nobody": {pod: "lone"},
		"static": {owners: by("v1", "Node", "node-1")},
		"Deployment": {by("apps/v1", "ReplicaSet", "web-7c9f8b5d4"), map[string]string{"pod-template-hash": "7c9f8b5d4"}, nil, "web-7c9f8b5d4-x2x2x",
			[]Owner{{"ReplicaSet", "web-7c9f8b5d4", "apps"}, {"Deployment", "web", "apps"}}},
		"Deployment with dashes and digits": {by("apps/v1", "ReplicaSet", "llama-3-8b-6d4"), map[string]string{"pod-template-hash": "6d4"}, nil, "",
			[]Owner{{"ReplicaSet", "llama-3-8b-6d4", "apps"}, {"Deployment", "llama-3-8b", "apps"}}},
		"ReplicaSet alone":                      {by("apps/v1", "ReplicaSet", "web"), nil, nil, "", []Owner{{"ReplicaSet", "web", "apps"}}},
		"ReplicaSet with the label of another":  {by("apps/v1", "ReplicaSet", "web-abc"), map[string]string{"pod-template-hash": "bcd"}, nil, "", []Owner{{"ReplicaSet", "web-abc", "apps"}}},
		"ReplicaSet with letters no hash has":   {by("apps/v1", "ReplicaSet", "web-aeiou"), map[string]string{"pod-template-hash": "aeiou"}, nil, "", []Owner{{"ReplicaSet", "web-aeiou", "apps"}}},
		"ReplicaSet named as its hash":          {by("apps/v1", "ReplicaSet", "-bcd"), map[string]string{"pod-template-hash": "bcd"}, nil, "", []Owner{{"ReplicaSet", "-bcd", "apps"}}},
		"ReplicaSet of another group":           {by("example.com/v1", "ReplicaSet", "web-bcd"), map[string]string{"pod-template-hash": "bcd"}, nil, "", []Owner{{"ReplicaSet", "web-bcd", "example.com"}}},
		"Rollout":                               {by("apps/v1", "ReplicaSet", "web-bcd"), map[string]string{"rollouts-pod-template-hash": "bcd"}, nil, "", []Owner{{"ReplicaSet", "web-bcd", "apps"}, {"Rollout", "web", "argoproj.io"}}},
		"StatefulSet":                           {by("apps/v1", "StatefulSet", "llm"), map[string]string{"apps.kubernetes.io/pod-index": "0"}, nil, "llm-0", []Owner{{"StatefulSet", "llm", "apps"}}},
		"StatefulSet, reference gone":           {nil, map[string]string{"statefulset.kubernetes.io/pod-name": "llm-0"}, nil, "llm-0", []Owner{{"StatefulSet", "llm", "apps"}}},
		"StatefulSet's label of another pod":    {nil, map[string]string{"statefulset.kubernetes.io/pod-name": "llm-0"}, nil, "other-0", nil},
		"DaemonSet":                             {by("apps/v1", "DaemonSet", "agent"), nil, nil, "", []Owner{{"DaemonSet", "agent", "apps"}}},
		"Job":                                   {by("batch/v1", "Job", "train"), map[string]string{"batch.kubernetes.io/job-name": "train"}, nil, "", []Owner{{"Job", "train", "batch"}}},
		"Job, reference gone":                   {nil, map[string]string{"job-name": "train"}, nil, "", []Owner{{"Job", "train", "batch"}}},
		"Job named after a date":                {by("batch/v1", "Job", "train-20261121"), nil, nil, "", []Owner{{"Job", "train-20261121", "batch"}}},
		"Job named after a date and an hour":    {by("batch/v1", "Job", "train-2026112112"), nil, nil, "", []Owner{{"Job", "train-2026112112", "batch"}}},
		"Job with a short number":               {by("batch/v1", "Job", "train-7"), nil, nil, "", []Owner{{"Job", "train-7", "batch"}}},
		"Job with a number of another year":     {by("batch/v1", "Job", "train-12345678"), nil, nil, "", []Owner{{"Job", "train-12345678", "batch"}}},
		"Job that is a number":                  {by("batch/v1", "Job", "-29920320"), nil, nil, "", []Owner{{"Job", "-29920320", "batch"}}},
		"CronJob":                               {by("batch/v1", "Job", "nightly-29920320"), nil, nil, "", []Owner{{"Job", "nightly-29920320", "batch"}, {"CronJob", "nightly", "batch"}}},
		"CronJob before 1.21":                   {by("batch/v1", "Job", "nightly-1795219200"), nil, nil, "", []Owner{{"Job", "nightly-1795219200", "batch"}, {"CronJob", "nightly", "batch"}}},
		"JobSet":                                {by("batch/v1", "Job", "train-workers-0"), map[string]string{"jobset.sigs.k8s.io/jobset-name": "train", "batch.kubernetes.io/job-name": "train-workers-0"}, nil, "", []Owner{{"Job", "train-workers-0", "batch"}, {"JobSet", "train", "jobset.x-k8s.io"}}},
		"JobSet, references gone":               {nil, map[string]string{"jobset.sigs.k8s.io/jobset-name": "train", "batch.kubernetes.io/job-name": "train-workers-0"}, nil, "", []Owner{{"Job", "train-workers-0", "batch"}, {"JobSet", "train", "jobset.x-k8s.io"}}},
		"JobSet of a CronJob's Job":             {by("batch/v1", "Job", "train-29920320"), map[string]string{"jobset.sigs.k8s.io/jobset-name": "top"}, nil, "", []Owner{{"Job", "train-29920320", "batch"}, {"CronJob", "train", "batch"}, {"JobSet", "top", "jobset.x-k8s.io"}}},
		"JobSet's label on another's pod":       {by("apps/v1", "DaemonSet", "agent"), map[string]string{"jobset.sigs.k8s.io/jobset-name": "train"}, nil, "", []Owner{{"DaemonSet", "agent", "apps"}}},
		"LeaderWorkerSet, leader":               {by("apps/v1", "StatefulSet", "llm"), map[string]string{"leaderworkerset.sigs.k8s.io/name": "llm", "leaderworkerset.sigs.k8s.io/worker-index": "0"}, nil, "llm-0", []Owner{{"StatefulSet", "llm", "apps"}, {"LeaderWorkerSet", "llm", "leaderworkerset.x-k8s.io"}}},
		"LeaderWorkerSet, worker":               {by("apps/v1", "StatefulSet", "llm-0"), map[string]string{"leaderworkerset.sigs.k8s.io/name": "llm"}, nil, "llm-0-1", []Owner{{"StatefulSet", "llm-0", "apps"}, {"LeaderWorkerSet", "llm", "leaderworkerset.x-k8s.io"}}},
		"RayCluster":                            {by("ray.io/v1", "RayCluster", "ray"), map[string]string{"ray.io/cluster": "ray"}, nil, "", []Owner{{"RayCluster", "ray", "ray.io"}}},
		"RayCluster, reference gone":            {nil, map[string]string{"ray.io/cluster": "ray"}, nil, "", []Owner{{"RayCluster", "ray", "ray.io"}}},
		"RayJob":                                {by("ray.io/v1", "RayCluster", "tune-x2"), map[string]string{"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "tune"}, nil, "", []Owner{{"RayCluster", "tune-x2", "ray.io"}, {"RayJob", "tune", "ray.io"}}},
		"RayService":                            {by("ray.io/v1", "RayCluster", "chat-x2"), map[string]string{"ray.io/originated-from-crd": "RayService", "ray.io/originated-from-cr-name": "chat"}, nil, "", []Owner{{"RayCluster", "chat-x2", "ray.io"}, {"RayService", "chat", "ray.io"}}},
		"RayCluster of itself":                  {by("ray.io/v1", "RayCluster", "ray"), map[string]string{"ray.io/originated-from-crd": "RayCluster", "ray.io/originated-from-cr-name": "ray"}, nil, "", []Owner{{"RayCluster", "ray", "ray.io"}}},
		"RayJob without a name":                 {by("ray.io/v1", "RayCluster", "ray"), map[string]string{"ray.io/originated-from-crd": "RayJob"}, nil, "", []Owner{{"RayCluster", "ray", "ray.io"}}},
		"Kubeflow":                              {by("kubeflow.org/v1", "PyTorchJob", "bert"), map[string]string{"training.kubeflow.org/job-name": "bert"}, nil, "", []Owner{{"PyTorchJob", "bert", "kubeflow.org"}}},
		"Argo Workflows":                        {by("argoproj.io/v1alpha1", "Workflow", "etl-x2"), map[string]string{"workflows.argoproj.io/workflow": "etl-x2"}, nil, "", []Owner{{"Workflow", "etl-x2", "argoproj.io"}}},
		"Argo Workflows, reference gone":        {nil, map[string]string{"workflows.argoproj.io/workflow": "etl"}, nil, "", []Owner{{"Workflow", "etl", "argoproj.io"}}},
		"Volcano":                               {by("batch.volcano.sh/v1alpha1", "Job", "mpi-29920320"), map[string]string{"volcano.sh/job-name": "mpi-29920320"}, nil, "", []Owner{{"Job", "mpi-29920320", "batch.volcano.sh"}}},
		"Volcano, reference gone":               {nil, map[string]string{"volcano.sh/job-name": "mpi"}, nil, "", []Owner{{"Job", "mpi", "batch.volcano.sh"}}},
		"pod group, as a label":                 {nil, map[string]string{"scheduling.k8s.io/group-name": "g"}, nil, "", []Owner{{"PodGroup", "g", ""}}},
		"pod group, as an annotation":           {nil, nil, map[string]string{"scheduling.k8s.io/group-name": "g"}, "", []Owner{{"PodGroup", "g", ""}}},
		"pod of a pod":                          {by("v1", "Pod", "driver"), nil, nil, "", []Owner{{"Pod", "driver", ""}}},
		"owners of which none is the manager":   {[]reference{{APIVersion: "v1", Kind: "A", Name: "a"}, {APIVersion: "v1", Kind: "B", Name: "b"}}, nil, nil, "", []Owner{{"A", "a", ""}}},
		"owners of which the second is manager": {[]reference{{APIVersion: "v1", Kind: "A", Name: "a"}, {APIVersion: "v1", Kind: "B", Name: "b", Controller: true}}, nil, nil, "", []Owner{{"B", "b", ""}}},
	} {
		if got := chain(c.owners, c.labels, c.annotations, c.pod, created); !slices.Equal(got, c.want) {
			t.Errorf("%s\ngot  %v\nwant %v", name, got, c.want)
		}
	}
}
