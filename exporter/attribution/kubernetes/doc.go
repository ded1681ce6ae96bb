// Package kubernetes knows which pods hold which devices of this node, and what those pods are.
//
// It asks the kubelet on the same machine and, where it is allowed to, the API server, each on its
// own period. Questions are answered from memory, never by a call. It knows nothing of the devices:
// a Ref says what an id names, and whoever knows the devices finds the one.
package kubernetes
