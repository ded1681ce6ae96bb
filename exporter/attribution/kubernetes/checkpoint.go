package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/gpumeter/gpumeter/exporter/safefile"
)

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
		reason := Broken
		if errors.Is(err, errTooLarge) {
			reason = TooLarge
		}
		l.health.ill(reason, fmt.Errorf("%s: %w", l.file.path, err))
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

// parseCheckpoint reads the device manager's checkpoint. An entry of no sense costs itself, as does one with more
// IDs than are kept of all pods.
func parseCheckpoint(raw []byte) (entries []given, offers map[string][]string, broken int, err error) {
	offers = map[string][]string{}
	left := mostHoldings // IDs that pods hold
	entry := func(part json.RawMessage) error {
		var e struct {
			PodUID, ContainerName, ResourceName string
			DeviceIDs                           json.RawMessage
		}
		ids := []string{}
		read := json.Unmarshal(part, &e) == nil
		if !read || !byNUMA(e.DeviceIDs, &ids) || !isUID(e.PodUID) || !isContainerName(e.ContainerName) || !isResource(e.ResourceName) {
			broken++
			return nil
		}
		if left -= max(len(ids), 1); left < 0 {
			return fmt.Errorf("%w: %d IDs", errTooLarge, mostHoldings)
		}
		entries = append(entries, given{UID: e.PodUID, Container: e.ContainerName, Resource: e.ResourceName, IDs: ids})
		return nil
	}
	offered := mostHoldings
	offer := func(resource string, part json.RawMessage) error {
		var ids []string
		read := fewIDs(part) && json.Unmarshal(part, &ids) == nil
		if !read || !isResource(resource) {
			broken++
			return nil
		}
		if offered -= max(len(ids), 1); offered < 0 {
			return fmt.Errorf("%w: %d IDs", errTooLarge, mostHoldings)
		}
		offers[resource] = ids
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	err = members(d, func(key string) error {
		if key != "Data" {
			return skip(d)
		}
		return members(d, func(key string) error {
			switch key {
			case "PodDeviceEntries":
				return elements(d, entry)
			case "RegisteredDevices":
				return members(d, func(resource string) error {
					var part json.RawMessage
					if err := d.Decode(&part); err != nil {
						return err
					}
					return offer(resource, part)
				})
			}
			return skip(d)
		})
	})
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return entries, offers, broken, nil
		}
		err = errors.Join(errors.New("more than one document"), err)
	}
	return nil, nil, broken, err
}

// fewIDs reports whether a list in JSON has no more texts than IDs are kept of all pods.
func fewIDs(raw []byte) bool { return bytes.Count(raw, []byte{','}) < mostHoldings }

// byNUMA reads the ids by NUMA node, as they are since Kubernetes 1.20, or in one list, as before.
func byNUMA(raw json.RawMessage, into *[]string) bool {
	if !fewIDs(raw) {
		return false
	}
	var nodes map[string][]string
	if json.Unmarshal(raw, &nodes) == nil {
		for _, ids := range nodes {
			*into = append(*into, ids...)
		}
		return true
	}
	return json.Unmarshal(raw, into) == nil
}
