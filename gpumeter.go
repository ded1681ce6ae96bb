// Package gpumeter is the root of the repository: go generate ./... here writes every generated
// file from spec/.
package gpumeter

//go:generate go run ./gen
