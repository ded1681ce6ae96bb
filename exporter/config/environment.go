package config

import (
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/gpumeter/gpumeter/spell"
)

// UnknownVariable is a variable that no flag has, and so has no effect.
type UnknownVariable struct {
	Name string
	Near string // the variable that was perhaps meant; empty: none is similar
}

// UnknownVariables returns the variables of ours that no flag has, of an environment as os.Environ
// returns it.
func UnknownVariables(environ []string) ([]UnknownVariable, error) {
	k, err := parser(new(Config), io.Discard, environment())
	if err != nil {
		return nil, err
	}
	const prefix = envPrefix + "_"
	var known []string
	for _, leaf := range k.Model.Leaves(false) {
		for _, flag := range slices.Concat(leaf.AllFlags(false)...) {
			for _, env := range flag.Envs {
				known = append(known, strings.TrimPrefix(env, prefix))
			}
		}
	}
	var out []UnknownVariable
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		word, ours := strings.CutPrefix(name, prefix)
		if !ours || slices.Contains(known, word) || serviceLink.MatchString(name) {
			continue
		}
		u := UnknownVariable{Name: name}
		if near := spell.Nearest(word, known); near != "" {
			u.Near = prefix + near
		}
		out = append(out, u)
	}
	return out, nil
}

// serviceLink is a variable that Kubernetes sets in all pods of a namespace with a Service called gpumeter,
// or gpumeter-…: https://kubernetes.io/docs/tutorials/services/connect-applications-service/#environment-variables
var serviceLink = regexp.MustCompile(`^GPUMETER(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)
