package kubernetes

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// owner refers to an object that is there.
func owner(kind, version string, o metav1.Object) []metav1.OwnerReference {
	controls := true
	return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: o.GetName(), UID: o.GetUID(), Controller: &controls}}
}

// template is what a controller would make pods of.
func template(labels map[string]string, restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{RestartPolicy: restart, Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

func (r *room) wholeGPU(t *testing.T) {
	ctx, apps := t.Context(), r.admin.AppsV1()
	labels := map[string]string{"app": "trainer"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	deployment, err := apps.Deployments("ml").Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "trainer"}, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template(labels, corev1.RestartPolicyAlways)},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	labels["pod-template-hash"] = "6d4cf56db6"
	set, err := apps.ReplicaSets("ml").Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "trainer-6d4cf56db6", Labels: labels, OwnerReferences: owner("Deployment", "apps/v1", deployment)},
		Spec:       appsv1.ReplicaSetSpec{Selector: selector, Template: template(labels, corev1.RestartPolicyAlways)},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := newPod("ml", "trainer-6d4cf56db6-x7k2p", "sleep", "nvidia.com/gpu")
	p.Labels, p.OwnerReferences, p.Spec.RestartPolicy = labels, owner("ReplicaSet", "apps/v1", set), corev1.RestartPolicyAlways
	r.whole.prefer(uuid(0))
	p = r.run(t, p)
	const who = `k8s_namespace_name="ml",k8s_pod_name="trainer-6d4cf56db6-x7k2p",k8s_container_name="main",k8s_workload_kind="Deployment",k8s_workload_name="trainer"`
	r.exporter.shows(t,
		`gpu_owner_info{gpu_uuid="`+uuid(0)+`",`+who+`,gpu_sharing="exclusive"} == 1`,
		`gpu_power_draw_watts{gpu_index="0",`+who+`} > 0`, `gpu_utilization_ratio{gpu_index="0",`+who+`} == 0.4`,
		`!gpu_owner_info{gpu_uuid!="`+uuid(0)+`",k8s_pod_name!=""}`, `!gpu_power_draw_watts{gpu_index!="0",k8s_pod_name!=""}`,
	)
	r.remove(t, p)
	r.exporter.shows(t, `!gpu_owner_info{k8s_pod_name!=""}`, `gpu_owner_info{gpu_uuid="`+uuid(0)+`",gpu_sharing="none"} == 1`,
		`gpu_power_draw_watts{gpu_index="0",k8s_pod_name="",k8s_workload_name=""} > 0`)
}

func (r *room) cronJob(t *testing.T) {
	ctx, batch := t.Context(), r.admin.BatchV1()
	cron, err := batch.CronJobs("lab").Create(ctx, &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly"},
		Spec:       batchv1.CronJobSpec{Schedule: "0 3 * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template(nil, corev1.RestartPolicyNever)}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprint("nightly-", time.Now().Unix()/60) // as a CronJob calls them, by the minute
	job, err := batch.Jobs("lab").Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owner("CronJob", "batch/v1", cron)},
		Spec:       batchv1.JobSpec{Template: template(nil, corev1.RestartPolicyNever)},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := newPod("lab", name+"-q9zvb", "sleep", "nvidia.com/gpu")
	p.Labels, p.OwnerReferences = map[string]string{"batch.kubernetes.io/job-name": job.Name, "job-name": job.Name}, owner("Job", "batch/v1", job)
	r.whole.prefer(uuid(0))
	r.run(t, p)
	r.exporter.shows(t, `gpu_owner_info{gpu_uuid="`+uuid(0)+`",k8s_pod_name="`+name+`-q9zvb",k8s_workload_kind="CronJob",k8s_workload_name="nightly"} == 1`)
}

// It may come and go between two looks; that it does not stay is what counts.
func (r *room) completed(t *testing.T) {
	r.whole.prefer(uuid(0))
	r.run(t, newPod("lab", "done", "end", "nvidia.com/gpu"))
	r.exporter.shows(t, `gpu_owner_info{gpu_uuid="`+uuid(0)+`",gpu_sharing="none"} == 1`, `!gpu_owner_info{k8s_pod_name!=""}`)
}
