package kubernetes

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// store is where the reflector puts what it is told. Nothing of the objects is kept but what a Pod has.
type store struct{ *podWatch }

// errObject is an object that is not the one asked for.
var errObject = errors.New("kubernetes: not the metadata of a pod")

// Add implements cache.ReflectorStore.
func (s store) Add(obj any) error {
	p, err := s.pod(obj)
	if err == nil {
		s.table.set(p)
	}
	return err
}

// Update implements cache.ReflectorStore.
func (s store) Update(obj any) error { return s.Add(obj) }

// Delete implements cache.ReflectorStore.
func (s store) Delete(obj any) error {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return errObject
	}
	s.table.remove(m.Namespace, m.Name, string(m.UID))
	return nil
}

// Replace implements cache.ReflectorStore.
func (s store) Replace(objs []any, _ string) error {
	all := make([]*Pod, 0, len(objs))
	for _, obj := range objs {
		if p, err := s.pod(obj); err == nil { // what makes no sense is counted
			all = append(all, p)
		}
	}
	s.table.replace(all, s.health)
	s.health.well()
	return nil
}

// Resync implements cache.ReflectorStore.
func (s store) Resync() error { return nil }

func (s store) pod(obj any) (*Pod, error) {
	m, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		s.counts.rejected.Add(1)
		return nil, errObject
	}
	r := &record{
		Namespace: m.Namespace, Name: m.Name, UID: string(m.UID), Labels: m.Labels, Annotations: m.Annotations,
		Created: m.CreationTimestamp.Time,
	}
	for _, o := range m.OwnerReferences {
		r.Owners = append(r.Owners, reference{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, Controller: o.Controller != nil && *o.Controller})
	}
	return s.reader.pod(r)
}

// statusError is the failure an event tells.
func statusError(obj runtime.Object) error {
	if status, ok := obj.(*metav1.Status); ok {
		return &apierrors.StatusError{ErrStatus: *status}
	}
	return fmt.Errorf("kubernetes: watch: %T", obj)
}
