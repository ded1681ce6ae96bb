package config

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"github.com/gpumeter/gpumeter/exporter/safefile"
	"github.com/gpumeter/gpumeter/spell"
)

// maxFile is far above any sensible file, and keeps a wrong path (a log, a device) from being read whole.
const maxFile = 1 << 20

// file is a YAML file whose keys are names of flags, written whole (web.listen-address: x) or
// nested at the dots (web: {listen-address: x}).
type file struct {
	path   string
	values map[string]any
	lines  map[string]int
}

// readFile reads the file and refuses keys that are no flags, all at once.
func readFile(path string, app *kong.Application) (*file, error) {
	raw, err := safefile.Read(context.Background(), path, maxFile)
	if err != nil {
		return nil, Refuse("config.file", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f := &file{path: path, values: map[string]any{}, lines: map[string]int{}}
	if len(doc.Content) == 0 {
		return f, nil // empty, or comments only
	}
	return f, f.flatten("", doc.Content[0], flagNames(app))
}

// flagNames are the keys a file may have.
func flagNames(app *kong.Application) []string {
	var names []string
	seen := map[string]bool{"help": true, "version": true, "config.file": true}
	for _, leaf := range app.Leaves(false) {
		for _, group := range leaf.AllFlags(false) {
			for _, flag := range group {
				if !seen[flag.Name] {
					seen[flag.Name] = true
					names = append(names, flag.Name)
				}
			}
		}
	}
	return names
}

// flatten joins nested keys with dots.
func (f *file) flatten(prefix string, n *yaml.Node, known []string) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: not a mapping of keys to values", f.path, n.Line)
	}
	var faults []error
	for i := 0; i < len(n.Content); i += 2 {
		name, value := prefix+n.Content[i].Value, n.Content[i+1]
		line := n.Content[i].Line
		switch {
		case slices.Contains(known, name):
			if err := f.set(name, line, value); err != nil {
				faults = append(faults, err)
			}
		case value.Kind == yaml.MappingNode:
			faults = append(faults, f.flatten(name+".", value, known))
		default:
			faults = append(faults, fmt.Errorf("%s:%d: unknown key %q%s", f.path, line, name, spell.Suggest(name, known)))
		}
	}
	return errors.Join(faults...)
}

// set keeps a value as the decoder of the flag wants it: text, or a list of texts.
func (f *file) set(name string, line int, value *yaml.Node) error {
	if _, twice := f.values[name]; twice {
		return fmt.Errorf("%s:%d: key %q is set twice", f.path, line, name)
	}
	f.lines[name] = line
	switch value.Kind {
	case yaml.ScalarNode:
		f.values[name] = value.Value
		return nil
	case yaml.SequenceNode:
		var list []any
		for _, item := range value.Content {
			if item.Kind != yaml.ScalarNode {
				return fmt.Errorf("%s:%d: %s: not a list of plain values", f.path, item.Line, name)
			}
			list = append(list, item.Value)
		}
		f.values[name] = list
		return nil
	}
	return fmt.Errorf("%s:%d: %s: not a value or a list of values", f.path, line, name)
}

// Validate implements kong.Resolver; readFile has checked the keys.
func (f *file) Validate(*kong.Application) error { return nil }

// Resolve implements kong.Resolver. The environment wins over the file.
func (f *file) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if inEnvironment(flag) {
		return nil, nil
	}
	return f.values[flag.Name], nil
}

// at is the place of a key.
func (f *file) at(name string) string { return fmt.Sprintf("%s:%d: %s", f.path, f.lines[name], name) }
