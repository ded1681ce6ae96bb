package kubernetes

import (
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// mostHoldings is how many IDs of all pods are kept: 64 devices with 100 replicas each have fewer.
const mostHoldings = 8192

// assembly makes holdings of an answer of the kubelet's.
type assembly struct {
	uid    func(container, resource, id string) string
	told   func(Claim) (Attributes, bool)
	offers map[Ref]int // replicas of each thing
	list   []Holding
	valid  map[string]bool // resources, of which there are few
	broken int
}

// pod takes in one pod. What makes no sense costs itself.
func (a *assembly) pod(p *podresources.PodResources) {
	named := false
	for _, c := range p.GetContainers() {
		if len(c.GetDevices()) == 0 && len(c.GetDynamicResources()) == 0 {
			continue
		}
		if !named && (!isNamespace(p.GetNamespace()) || !isPodName(p.GetName())) {
			a.broken++
			return
		}
		named = true
		if !isContainerName(c.GetName()) {
			a.broken++
			continue
		}
		by := Holding{Namespace: p.GetNamespace(), Pod: p.GetName(), Container: c.GetName()}
		for _, d := range c.GetDevices() {
			a.devices(by, d)
		}
		for _, d := range c.GetDynamicResources() {
			a.claims(by, d)
		}
	}
}

// devices takes in what a device plugin gave.
func (a *assembly) devices(h Holding, d *podresources.ContainerDevices) {
	h.Resource = d.GetResourceName()
	if !a.resource(h.Resource) {
		a.broken++
		return
	}
	for _, id := range d.GetDeviceIds() {
		if !isRaw(id) {
			a.broken++
			continue
		}
		h.ID, h.Ref, h.UID = id, Parse(h.Resource, id), a.uid(h.Container, h.Resource, id)
		if h.Replicas = a.offers[h.Ref.whole()]; h.Replicas == 1 {
			h.Ref.Shared = false // it could be shared, and is offered once
		}
		a.add(h)
	}
}

// claims takes in what a DRA driver gave.
func (a *assembly) claims(h Holding, d *podresources.DynamicResource) {
	claim := Claim{Namespace: d.GetClaimNamespace(), Name: d.GetClaimName()}
	if !isNamespace(claim.Namespace) || !isPodName(claim.Name) {
		a.broken++
		return
	}
	for _, r := range d.GetClaimResources() {
		claim.Driver, claim.Pool, claim.Device, claim.Share = r.GetDriverName(), r.GetPoolName(), r.GetDeviceName(), r.GetShareId()
		if !isPodName(claim.Driver) || !isRaw(claim.Pool) || claim.Device != "" && !isRaw(claim.Device) ||
			claim.Share != "" && !isUID(claim.Share) {
			a.broken++
			continue
		}
		h.Resource, h.ID, h.Claim, h.Ref = claim.Driver, claim.Device, claim, ParseDRA(claim.Driver, claim.Device)
		for _, cdi := range r.GetCdiDevices() {
			h.Ref.fromCDI(cdi.GetName())
		}
		if told, ok := a.told(claim); ok {
			h.Ref = h.Ref.told(told)
		}
		h.Ref.Shared = claim.Share != ""
		a.add(h)
	}
}

// resource says whether a resource's name is valid, and works it out once for each.
func (a *assembly) resource(name string) bool {
	valid, known := a.valid[name]
	if !known {
		valid = isResource(name)
		if len(a.valid) < 256 {
			a.valid[name] = valid
		}
	}
	return valid
}

func (a *assembly) add(h Holding) {
	if len(a.list) == mostHoldings {
		a.broken++
		return
	}
	a.list = append(a.list, h)
}

// replicas counts how many ids each thing is offered as.
func replicas(resource string, ids []string, into map[Ref]int) {
	for _, id := range ids {
		if r := Parse(resource, id); r.By != ByNothing {
			into[r.whole()]++
		}
	}
}
