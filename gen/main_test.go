package main

import "testing"

// Nothing generated is missing, stale or left over. In-process, so that go test's cache sees
// every file this opens.
func TestGenerated(t *testing.T) {
	if err := run("..", emitters, true); err != nil {
		t.Error(err)
	}
}
