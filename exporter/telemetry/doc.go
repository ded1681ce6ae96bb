// Package telemetry is the spec as Go types: one struct per group, one per scope, and a table per
// scope that leads from a metric's description to its readings. Every zz_*.go is generated.
package telemetry
