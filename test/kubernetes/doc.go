// Package kubernetes runs gpumeter beside a real kubelet and a real API server, with real pods. The
// GPUs are those of test/fakenvml, which a device plugin and a DRA driver made for the test give away.
package kubernetes
