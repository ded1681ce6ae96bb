package kubernetes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	mostKept       = 64   // labels, and annotations, of one pod; what is on the list and beyond it is left out
	longestPattern = 317  // a label's name with its prefix has no more
	longestNote    = 1024 // bytes of an annotation's value; Kubernetes lets them have 256 KiB
)

// allowed are the names of labels or annotations that may leave the node. Nothing is on it by itself:
// annotations hold whole objects, and labels what nobody meant to publish.
type allowed []string

// newAllowed checks the patterns: names, with * for any run of characters, the slash too. What can be
// no name, and matches none, is a mistake: nothing would be shown, and nobody would know why.
func newAllowed(patterns []string) (allowed, error) {
	for _, p := range patterns {
		if p == "" || len(p) > longestPattern || strings.ContainsFunc(p, func(c rune) bool {
			return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./*", c))
		}) || strings.Count(p, "/") > 1 || !strings.Contains(p, "*") && !isResource(p) {
			return nil, fmt.Errorf("%q is neither a name of a label nor a pattern of one", p)
		}
	}
	return slices.Clone(patterns), nil
}

// has says whether a name is on the list.
func (a allowed) has(name string) bool {
	return slices.ContainsFunc(a, func(p string) bool { return matches(p, name) })
}

// matches says whether a name is of a pattern.
func matches(pattern, name string) bool {
	head, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	if !strings.HasPrefix(name, head) {
		return false
	}
	name = name[len(head):]
	for {
		part, next, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(name, part)
		}
		at := strings.Index(name, part) // the first will do: what follows may be anything
		if at < 0 {
			return false
		}
		name, rest = name[at+len(part):], next
	}
}

// pick copies what is on the list and valid; broken is how many were not valid, or too many.
func (a allowed) pick(all map[string]string, valid func(name, value string) bool) (kept map[string]string, broken int) {
	if len(a) == 0 {
		return nil, 0
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch {
		case !a.has(name):
		case len(kept) == mostKept || !valid(name, all[name]):
			broken++
		default:
			if kept == nil {
				kept = map[string]string{}
			}
			kept[name] = all[name]
		}
	}
	return kept, broken
}
