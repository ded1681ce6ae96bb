package gentest

import "testing"

// The sample uses the whole language and is without fault.
func TestSample(t *testing.T) {
	if m := Model(t); len(m.Metrics) == 0 {
		t.Error("no metrics")
	}
}
