package kubernetes

import (
	"errors"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// errWire is an encoding that is cut short or is none.
var errWire = errors.New("kubernetes: not a pod in Kubernetes' encoding")

// mostEntries is how many labels, annotations, owners or containers of one pod are taken in.
const mostEntries = 4096

// decodePod reads a core/v1 Pod in Kubernetes' protobuf encoding: what a record holds, and nothing else.
// Kubernetes' own type would bring every type of its core group into the program. The numbers are
// those of the fields in k8s.io/api/core/v1/generated.proto and apimachinery's meta/v1.
func decodePod(raw []byte) (*record, error) {
	r := &record{}
	state := map[string]Container{} // by container
	err := fields(raw, func(n protowire.Number, v []byte, _ uint64) error {
		switch n {
		case 1:
			return r.metadata(v)
		case 2:
			return fields(v, func(n protowire.Number, v []byte, _ uint64) error {
				if n == 2 || n == 20 { // containers, initContainers
					return r.container(v, n == 20)
				}
				return nil
			})
		case 3:
			return fields(v, func(n protowire.Number, v []byte, _ uint64) error {
				switch n {
				case 1:
					r.Phase = string(v)
				case 8, 10: // containerStatuses, initContainerStatuses
					return containerStatus(v, state)
				}
				return nil
			})
		}
		return nil
	})
	for i := range r.Containers {
		c := &r.Containers[i]
		c.ID, c.Ended = state[c.Name].ID, state[c.Name].Ended
	}
	return r, err
}

// metadata reads an ObjectMeta.
func (r *record) metadata(raw []byte) error {
	return fields(raw, func(n protowire.Number, v []byte, _ uint64) error {
		switch n {
		case 1:
			r.Name = string(v)
		case 3:
			r.Namespace = string(v)
		case 5:
			r.UID = string(v)
		case 8: // creationTimestamp
			return fields(v, func(n protowire.Number, _ []byte, x uint64) error {
				if n == 1 {
					r.Created = time.Unix(int64(x), 0)
				}
				return nil
			})
		case 11:
			return entry(v, &r.Labels)
		case 12:
			return entry(v, &r.Annotations)
		case 13:
			var o reference
			err := fields(v, func(n protowire.Number, v []byte, x uint64) error {
				switch n {
				case 1:
					o.Kind = string(v)
				case 3:
					o.Name = string(v)
				case 5:
					o.APIVersion = string(v)
				case 6:
					o.Controller = x != 0
				}
				return nil
			})
			if len(r.Owners) < mostEntries {
				r.Owners = append(r.Owners, o)
			}
			return err
		}
		return nil
	})
}

// container reads a Container of the spec.
func (r *record) container(raw []byte, init bool) error {
	c := Container{Init: init}
	err := fields(raw, func(n protowire.Number, v []byte, _ uint64) error {
		switch n {
		case 1:
			c.Name = string(v)
		case 2:
			c.Image = string(v)
		case 24: // restartPolicy: an init container that is always restarted runs beside the others
			c.Init = c.Init && string(v) != "Always"
		}
		return nil
	})
	if len(r.Containers) < mostEntries {
		r.Containers = append(r.Containers, c)
	}
	return err
}

// containerStatus reads a ContainerStatus.
func containerStatus(raw []byte, into map[string]Container) error {
	var c Container
	err := fields(raw, func(n protowire.Number, v []byte, _ uint64) error {
		switch n {
		case 1:
			c.Name = string(v)
		case 2: // state
			return fields(v, func(n protowire.Number, _ []byte, _ uint64) error {
				c.Ended = c.Ended || n == 3 // terminated
				return nil
			})
		case 8:
			c.ID = string(v)
		}
		return nil
	})
	if len(into) < mostEntries {
		into[c.Name] = c
	}
	return err
}

// entry reads one of a map of strings.
func entry(raw []byte, into *map[string]string) error {
	var key, value string
	err := fields(raw, func(n protowire.Number, v []byte, _ uint64) error {
		switch n {
		case 1:
			key = string(v)
		case 2:
			value = string(v)
		}
		return nil
	})
	if *into == nil {
		*into = map[string]string{}
	}
	if len(*into) < mostEntries {
		(*into)[key] = value
	}
	return err
}

// fields calls f for each field of a message: of bytes with v, of a number with x.
func fields(raw []byte, f func(n protowire.Number, v []byte, x uint64) error) error {
	for len(raw) > 0 {
		n, kind, size := protowire.ConsumeTag(raw)
		if size < 0 {
			return errWire
		}
		raw = raw[size:]
		var v []byte
		var x uint64
		switch kind {
		case protowire.BytesType:
			v, size = protowire.ConsumeBytes(raw)
		case protowire.VarintType:
			x, size = protowire.ConsumeVarint(raw)
		default:
			size = protowire.ConsumeFieldValue(n, kind, raw)
		}
		if size < 0 {
			return errWire
		}
		raw = raw[size:]
		if err := f(n, v, x); err != nil {
			return err
		}
	}
	return nil
}
