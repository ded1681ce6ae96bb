package kubernetes

import (
	"encoding/json"
	"errors"
)

// errShape is JSON that has something else where an object or a list is expected.
var errShape = errors.New("not an object or list where one is expected")

// members calls f for each key of the object that comes next, which reads the value; null has none.
func members(d *json.Decoder, f func(key string) error) error {
	return inside(d, '{', func() error {
		t, err := d.Token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok {
			return errShape
		}
		return f(key)
	})
}

// elements calls f for each value of the list that comes next, one at a time; null has none.
func elements(d *json.Decoder, f func(json.RawMessage) error) error {
	var raw json.RawMessage
	return inside(d, '[', func() error {
		if err := d.Decode(&raw); err != nil {
			return err
		}
		return f(raw)
	})
}

func inside(d *json.Decoder, open json.Delim, f func() error) error {
	t, err := d.Token()
	if err != nil || t == nil {
		return err
	}
	if t != open {
		return errShape
	}
	for d.More() {
		if err := f(); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// skip passes over the value that comes next.
func skip(d *json.Decoder) error {
	var raw json.RawMessage
	return d.Decode(&raw)
}
