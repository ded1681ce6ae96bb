// Package prometheus runs the rules in Prometheus' own rule manager, engine and database, on simulated time.
package prometheus
