//go:build !race

package kubernetes

// raced says that the race detector watches.
const raced = false
