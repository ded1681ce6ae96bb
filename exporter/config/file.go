package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

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
	used   map[string]bool // keys whose value nothing stronger replaced
}

// readFile reads the file and refuses keys that are no flags, all at once.
func readFile(path string, app *kong.Application) (*file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("config file: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("config file %s: not a regular file of at most %d bytes", path, maxFile)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("config file: %w", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("config file %s: %w", path, err)
	}
	f := &file{path: path, values: map[string]any{}, lines: map[string]int{}, used: map[string]bool{}}
	if len(doc.Content) == 0 {
		return f, nil // empty, or comments only
	}
	return f, f.flatten("", doc.Content[0], flagNames(app))
}

// flagNames are the keys a file may have.
func flagNames(app *kong.Application) []string {
	var names []string
	seen := map[string]bool{"help": true, "config.file": true}
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
		return fmt.Errorf("%s:%d: want keys and values", f.path, n.Line)
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
		return fmt.Errorf("%s:%d: key %q is there twice", f.path, line, name)
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
				return fmt.Errorf("%s:%d: %s: want a list of values", f.path, item.Line, name)
			}
			list = append(list, item.Value)
		}
		f.values[name] = list
		return nil
	}
	return fmt.Errorf("%s:%d: %s: want a value or a list of values", f.path, line, name)
}

// Validate implements kong.Resolver; readFile has checked the keys.
func (f *file) Validate(*kong.Application) error { return nil }

// Resolve implements kong.Resolver. The environment wins over the file.
func (f *file) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if inEnvironment(flag) {
		return nil, nil
	}
	value, ok := f.values[flag.Name]
	f.used[flag.Name] = ok
	return value, nil
}

// place puts the line before an error about a flag that has its value from the file.
func (f *file) place(err error) error {
	if f == nil {
		return err
	}
	for name, line := range f.lines {
		if !f.used[name] {
			continue
		}
		if strings.HasPrefix(err.Error(), "--"+name+":") || strings.HasPrefix(err.Error(), "--"+name+" ") {
			return fmt.Errorf("%s:%d: %w", f.path, line, err)
		}
	}
	return err
}
