package kubernetes

import (
	"reflect"
	"sync"
	"sync/atomic"
)

type podName struct{ namespace, name string }

// table holds the pods of the node by all they are asked for by.
type table struct {
	counts  *counts
	stirred atomic.Bool // a pod came, ended or went since somebody looked

	mu          sync.RWMutex
	teller      *health // of whom all pods are known; nil: nobody has told all there are yet
	byName      map[podName]*Pod
	byUID       map[string]*Pod // also by the hash of a static pod
	byContainer map[string]*Pod
}

func newTable(c *counts) *table {
	t := &table{counts: c}
	t.clear()
	return t
}

func (t *table) clear() {
	t.byName, t.byUID, t.byContainer = map[podName]*Pod{}, map[string]*Pod{}, map[string]*Pod{}
}

// replace takes the pods for all there are, as the source with the given health tells.
func (t *table) replace(pods []*Pod, teller *health) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.byUID
	t.clear()
	for _, p := range pods {
		was := old[p.UID]
		t.stir(was, p)
		if reflect.DeepEqual(was, p) {
			p = was // the new one is garbage at once, and what callers hold stays shared
		}
		t.add(p)
	}
	if len(t.byUID) < len(old) {
		t.stirred.Store(true)
	}
	t.teller = teller
}

// set adds a pod, or replaces what was known of it.
func (t *table) set(p *Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.byUID[p.UID]
	t.stir(was, p)
	if was != nil && was.UID == p.UID { // not the mirror of a static pod
		if reflect.DeepEqual(was, p) {
			return
		}
		t.drop(was)
	}
	t.add(p)
}

// remove forgets the pod with the UID, or all of the name when the UID is not told.
func (t *table) remove(namespace, name, uid string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.byUID[uid]
	if uid == "" {
		p = t.byName[podName{namespace, name}]
	}
	if p != nil && (uid == "" || p.UID == uid) {
		t.drop(p)
		t.stirred.Store(true)
	}
}

// stir notes that what pods hold may be different now.
func (t *table) stir(was, is *Pod) {
	if was == nil || was.terminal() != is.terminal() {
		t.stirred.Store(true)
	}
}

func (t *table) add(p *Pod) {
	if len(t.byUID) >= 2*mostPods { // each may be there twice, by UID and by hash
		t.counts.rejected.Add(1)
		return
	}
	name := podName{p.Namespace, p.Name}
	// A pod that has ended may be told of beside its successor of the same name: a StatefulSet's.
	if was := t.byName[name]; was == nil || was.terminal() || !p.terminal() {
		t.byName[name] = p
	}
	t.byUID[p.UID] = p
	if p.Hash != "" {
		t.byUID[p.Hash] = p
	}
	for _, c := range p.Containers {
		if c.ID != "" {
			t.byContainer[c.ID] = p
		}
	}
}

func (t *table) drop(p *Pod) {
	name := podName{p.Namespace, p.Name}
	if t.byName[name] == p {
		delete(t.byName, name)
	}
	for _, uid := range []string{p.UID, p.Hash} {
		if t.byUID[uid] == p {
			delete(t.byUID, uid)
		}
	}
	for _, c := range p.Containers {
		if t.byContainer[c.ID] == p {
			delete(t.byContainer, c.ID)
		}
	}
}

// named finds a pod; one that has ended is not found.
func (t *table) named(namespace, name string) (Pod, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return alive(t.byName[podName{namespace, name}])
}

// withUID finds a pod by its UID, or by a static pod's hash; one that has ended is not found.
func (t *table) withUID(uid string) (Pod, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return alive(t.byUID[uid])
}

// withContainer finds a pod by the id of a container.
func (t *table) withContainer(id string) (Pod, Container, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	p, ok := alive(t.byContainer[id])
	for _, c := range p.Containers {
		if c.ID == id {
			return p, c, ok
		}
	}
	return Pod{}, Container{}, false
}

func alive(p *Pod) (Pod, bool) {
	if p == nil || p.terminal() {
		return Pod{}, false
	}
	return *p, true
}

// standing of a pod as far as the table knows.
type standing uint8

const (
	unknown standing = iota // not in the table
	running
	ended
)

// standing says how the pod is, of the UID where that is told. A source may know a static pod by another
// UID; but that a pod of the name has ended says nothing of one with a UID of its own.
func (t *table) standing(namespace, name, uid string) standing {
	t.mu.RLock()
	defer t.mu.RUnlock()
	named, p := t.byName[podName{namespace, name}], t.byUID[uid]
	switch {
	case p == nil && named != nil && (uid == "" || !named.terminal()):
		p = named
	case p == nil:
		return unknown
	}
	if p.terminal() {
		return ended
	}
	return running
}

// told is how many pods are known, and how the source is that told of all; nil: none has.
func (t *table) told() (pods int, teller *health) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.byName), t.teller
}
