package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gpumeter/gpumeter/exporter/safefile"
)

// mostCheckpoint is how much of the checkpoint is read, bytes.
const mostCheckpoint = 16 << 20

// given is what one container was given of one resource, as the checkpoint tells. There the pod has its
// UID, which pod resources do not tell, and stays after it has ended until other devices are given away.
type given struct {
	UID       string
	Container string
	Resource  string
	IDs       []string
}

// slot is an id of a resource: the kubelet gives it to one container at a time.
type slot struct{ resource, id string }

// ledger follows the checkpoint of the kubelet's device manager.
type ledger struct {
	file   watched
	text   safefile.File
	health *health
	counts *counts
	begun  bool
	holder map[slot]given
	offers map[string][]string // all ids of each resource
	unseen map[string]int      // pods in it that were not listed yet, and in how many lists they were missed
	known  map[string]bool     // pods in it that were listed, or counted as unseen
}

func newLedger(path string, h *health, c *counts) *ledger {
	return &ledger{file: watched{path: path}, text: safefile.File{Path: path, Limit: mostCheckpoint}, health: h, counts: c, unseen: map[string]int{}, known: map[string]bool{}}
}

// read takes in the checkpoint. A file that hangs is a failure after safefile.Patience, and is not read again
// while it hangs. Pods that came into it and went without having been listed are counted.
func (l *ledger) read(ctx context.Context) {
	l.counts.ask(Checkpoint)
	raw, err := l.text.Read(ctx)
	if err != nil {
		l.health.ill(why(err), err)
		return
	}
	entries, offers, broken, err := parseCheckpoint(raw)
	l.counts.rejected.Add(uint64(broken))
	if err != nil {
		l.health.ill(Broken, fmt.Errorf("%s: %w", l.file.path, err))
		return
	}
	l.health.well()
	l.holder, l.offers = map[slot]given{}, offers
	there := map[string]bool{}
	for _, g := range entries {
		there[g.UID] = true
		for _, id := range g.IDs {
			at, holder := slot{g.Resource, id}, g
			if other, twice := l.holder[at]; twice && other.UID != g.UID {
				holder.UID = "" // two claim it: neither is believed
			}
			l.holder[at] = holder
		}
		if _, waits := l.unseen[g.UID]; waits || l.known[g.UID] {
			continue
		}
		if l.begun {
			l.unseen[g.UID] = 0
		} else {
			l.known[g.UID] = true // it may have ended long before we began to look
		}
	}
	l.begun = true
	for uid := range l.unseen {
		if !there[uid] {
			l.counts.unseen.Add(1)
			delete(l.unseen, uid)
		}
	}
	for uid := range l.known {
		if !there[uid] {
			delete(l.known, uid)
		}
	}
}

// uid is of the pod the id was given to.
func (l *ledger) uid(container, resource, id string) string {
	if g, ok := l.holder[slot{resource, id}]; ok && g.Container == container {
		return g.UID
	}
	return ""
}

// listed notes which pods a list had. One that is missed twice was gone before it was seen: the first
// time it may only have been too new.
func (l *ledger) listed(uids map[string]bool) {
	for uid, missed := range l.unseen {
		switch {
		case uids[uid]:
		case missed == 0:
			l.unseen[uid]++
			continue
		default:
			l.counts.unseen.Add(1)
		}
		delete(l.unseen, uid)
		l.known[uid] = true
	}
}

// parseCheckpoint reads the device manager's checkpoint. An entry of no sense costs itself.
func parseCheckpoint(raw []byte) (entries []given, offers map[string][]string, broken int, err error) {
	var file struct {
		Data struct {
			PodDeviceEntries  []json.RawMessage
			RegisteredDevices map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, nil, 0, err
	}
	for _, part := range file.Data.PodDeviceEntries {
		var e struct {
			PodUID, ContainerName, ResourceName string
			DeviceIDs                           json.RawMessage
		}
		ids := []string{}
		if json.Unmarshal(part, &e) != nil || !byNUMA(e.DeviceIDs, &ids) || !isUID(e.PodUID) || !isContainerName(e.ContainerName) || !isResource(e.ResourceName) {
			broken++
			continue
		}
		entries = append(entries, given{UID: e.PodUID, Container: e.ContainerName, Resource: e.ResourceName, IDs: ids})
	}
	offers = map[string][]string{}
	for resource, part := range file.Data.RegisteredDevices {
		var ids []string
		if !isResource(resource) || json.Unmarshal(part, &ids) != nil {
			broken++
			continue
		}
		offers[resource] = ids
	}
	return entries, offers, broken, nil
}

// byNUMA reads the ids by NUMA node, as they are since Kubernetes 1.20, or in one list, as before.
func byNUMA(raw json.RawMessage, into *[]string) bool {
	var nodes map[string][]string
	if json.Unmarshal(raw, &nodes) == nil {
		for _, ids := range nodes {
			*into = append(*into, ids...)
		}
		return true
	}
	return json.Unmarshal(raw, into) == nil
}
