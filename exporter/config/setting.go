package config

import (
	"cmp"
	"errors"
	"strings"
)

// SettingError reports that the value of a setting cannot be used.
type SettingError struct {
	Flag string // the name of its flag, without dashes
	Err  error

	place string // where the value was set; empty: by the flag
}

// Error names the flag, or the environment variable or the line of the file that set the value.
func (e *SettingError) Error() string {
	return cmp.Or(e.place, "--"+e.Flag) + ": " + e.Err.Error()
}

// Unwrap returns why the value cannot be used.
func (e *SettingError) Unwrap() error { return e.Err }

// Refuse returns a SettingError of this flag for each error that err joins; nil when err is nil.
func Refuse(flag string, err error) error {
	var out []error
	for _, e := range Split(err) {
		out = append(out, &SettingError{Flag: flag, Err: e})
	}
	return errors.Join(out...)
}

// Split returns the errors that err joins, each to be printed on a line of its own.
func Split(err error) []error {
	if err == nil {
		return nil
	}
	several, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var parts []string
	var out []error
	for _, e := range several.Unwrap() {
		parts, out = append(parts, e.Error()), append(out, Split(e)...)
	}
	if strings.Join(parts, "\n") != err.Error() { // not of errors.Join: a text around several errors
		return []error{err}
	}
	return out
}

// Locate returns err with each SettingError naming the place where the value was set.
func (c *Config) Locate(err error) error {
	var out []error
	for _, e := range Split(err) {
		if s, ok := e.(*SettingError); ok { //nolint:errorlint // a text around it would be lost
			e = &SettingError{Flag: s.Flag, Err: s.Err, place: c.places[s.Flag]}
		}
		out = append(out, e)
	}
	return errors.Join(out...)
}
