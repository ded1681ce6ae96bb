package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Why a device that a source lists is not read. These are mistakes in the source's code.
var (
	errNoPointer  = errors.New("not a pointer")
	errTwice      = errors.New("listed twice")
	errNoIdentity = errors.New("no identity")
)

// adopt keeps the workers of devices that are still there, starts those of new ones and stops the rest.
func (k *keeper) adopt(ctx context.Context, devices []source.Device) {
	have := map[source.Device]*worker{}
	var next []*worker
	for _, w := range k.current() {
		if w.device == nil {
			next = append(next, w)
		} else {
			have[w.device] = w
		}
	}
	refused := map[string]error{}
	var fresh []source.Device
	for _, d := range devices {
		switch {
		case reflect.ValueOf(d).Kind() != reflect.Pointer:
			k.refuse(refused, nameOf(d), errNoPointer)
		case have[d] != nil:
			next = append(next, have[d])
			delete(have, d)
		case slices.Contains(fresh, d), slices.ContainsFunc(next, func(w *worker) bool { return w.device == d }):
			k.refuse(refused, nameOf(d), errTwice)
		default:
			fresh = append(fresh, d)
		}
	}
	for _, d := range fresh {
		if w := k.workerFor(d, next, refused); w != nil {
			k.start(ctx, w)
			next = append(next, w)
		}
	}
	maps.DeleteFunc(k.leaving, func(_ any, w *worker) bool { return w.ended() })
	for d, w := range have {
		k.dismiss(w)
		k.leaving[d] = w
		k.log.Warn("device gone", "device", w.called)
	}
	k.refused = refused
	var faults []error
	for _, device := range slices.Sorted(maps.Keys(refused)) {
		faults = append(faults, refused[device])
	}
	k.set(func() {
		if k.state != telemetry.SourceStateServing {
			k.log.Info("source serving", "devices", devicesOf(next))
		}
		k.workers, k.state, k.err, k.away = next, telemetry.SourceStateServing, errors.Join(faults...), false
	})
}

// workerFor returns the worker of a new device, nil when the device is not to be read.
func (k *keeper) workerFor(d source.Device, others []*worker, refused map[string]error) *worker {
	id, err := identify(d)
	if err != nil {
		k.refuse(refused, nameOf(d), err)
		return nil
	}
	if !k.cfg.Devices(id) {
		return nil
	}
	w := deviceWorker(k.src.Name, d, k.devices.meet(k.src.Name, id), k.log)
	w.called = cmp.Or(id.UUID, id.PCI, fmt.Sprintf("device %d", id.Index))
	if slices.ContainsFunc(others, func(other *worker) bool { return other.known == w.known }) {
		k.refuse(refused, w.called, errTwice)
		return nil
	}
	k.log.Info("device found", "uuid", id.UUID, "pci", id.PCI, "model", id.Model)
	return w
}

// identify returns the identity of a device. A panic in its code is an error.
func identify(d source.Device) (id *telemetry.Identity, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: panicked: %v", errNoIdentity, p)
		}
	}()
	if id = d.Identity(); id == nil {
		return nil, errNoIdentity
	}
	return id, nil
}

// refuse leaves a device unread. It is logged once, and counted each time the source lists it.
func (k *keeper) refuse(refused map[string]error, device string, why error) {
	if k.refused[device] == nil && refused[device] == nil {
		k.log.Error("device is not read", "device", device, "err", why)
	}
	refused[device] = fmt.Errorf("%s: device %s: %w", k.src.Name, device, why)
	reason := errNoIdentity
	for _, known := range []error{errNoPointer, errTwice} {
		if errors.Is(why, known) {
			reason = known
		}
	}
	k.ledger.fault(k.cfg.Now(), Fault{Source: k.src.Name, Metric: "*", Reason: reason.Error()})
}

// nameOf returns a name for a device in errors: its UUID or PCI address, else its Go type.
func nameOf(d source.Device) string {
	id, err := identify(d)
	if err != nil {
		return fmt.Sprintf("%T", d)
	}
	return cmp.Or(id.UUID, id.PCI, fmt.Sprintf("%T", d))
}
