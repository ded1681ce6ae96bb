package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newPod is one of a single container, main, with a unit of each resource it needs.
func newPod(namespace, name, does string, needs ...string) *corev1.Pod {
	never, patience := false, int64(1)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			HostNetwork: true, RestartPolicy: corev1.RestartPolicyNever,
			AutomountServiceAccountToken: &never, EnableServiceLinks: &never, TerminationGracePeriodSeconds: &patience,
			Containers: []corev1.Container{{Name: "main", Image: image, ImagePullPolicy: corev1.PullNever, Args: []string{does}}},
		},
	}
	for _, resourceName := range needs {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceName(resourceName): resource.MustParse("1")}
	}
	return p
}

// run makes a pod, puts it on the node as a scheduler would, waits until it runs, or has ended where it
// does no more, and has it deleted with the test.
func (c *cluster) run(t *testing.T, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	return c.runWith(t, p, func(*corev1.Pod) error { return nil })
}

// runWith does more once the pod has a UID, before it is put on the node.
func (c *cluster) runWith(t *testing.T, p *corev1.Pod, more func(*corev1.Pod) error) *corev1.Pod {
	t.Helper()
	pods := c.admin.CoreV1().Pods(p.Namespace)
	made, err := pods.Create(t.Context(), p, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.remove(t, made) })
	err = more(made)
	if err == nil {
		err = pods.Bind(t.Context(), &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: nodeName},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	want := corev1.PodRunning
	if p.Spec.Containers[0].Args[0] == "end" {
		want = corev1.PodSucceeded
	}
	await(t, "pod "+p.Name, func(ctx context.Context) error {
		now, err := pods.Get(ctx, p.Name, metav1.GetOptions{})
		if err == nil && now.Status.Phase != want {
			err = fmt.Errorf("it is %s: %s %s %+v", now.Status.Phase, now.Status.Reason, now.Status.Message, now.Status.ContainerStatuses)
		}
		return err
	})
	return made
}

// remove deletes a pod and waits until it is gone.
func (c *cluster) remove(t *testing.T, p *corev1.Pod) {
	t.Helper()
	pods := c.admin.CoreV1().Pods(p.Namespace)
	ctx := context.WithoutCancel(t.Context()) // it may be the end of the test
	if err := pods.Delete(ctx, p.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	awaitWith(ctx, t, "end of pod "+p.Name, func(ctx context.Context) error {
		now, err := pods.Get(ctx, p.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && now.UID != p.UID {
			return nil
		}
		return errors.Join(err, errors.New("it is still there"))
	})
}

// processes are those of a pod's containers, by what their control groups tell.
func processes(t *testing.T, p *corev1.Pod) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		groups, err := os.ReadFile(file)
		line, err2 := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err != nil || err2 != nil || !strings.Contains(string(groups), "pod"+string(p.UID)) || strings.HasPrefix(string(line), "/payload\x00pause") {
			continue // others come and go
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}
