package telemetry

import (
	"math"
	"slices"
	"testing"
)

func TestXIDActionOf(t *testing.T) {
	for code, want := range map[uint64]XIDAction{
		8: XIDActionApplication, 79: XIDActionReboot, 48: XIDActionDrain, 95: XIDActionReset, 74: XIDActionInspect,
		63: XIDActionNone, 172: XIDActionNone, 0: XIDActionUnknown, 7: XIDActionUnknown, 173: XIDActionUnknown, math.MaxUint64: XIDActionUnknown,
	} {
		if got := XIDActionOf(code); got != want {
			t.Errorf("XID %d asks for %s, want %s", code, got, want)
		}
	}
}

func TestXIDMeaningOf(t *testing.T) {
	if m := XIDMeaningOf(79); m.Code != 79 || m.Mnemonic != "ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS" || m.Severity != "critical" || m.Brief == "" {
		t.Errorf("XID 79 is %+v", m)
	}
	if m := XIDMeaningOf(7); m != (XIDMeaning{Code: 7, Action: XIDActionUnknown}) {
		t.Errorf("XID 7, which nobody knows, is %+v", m)
	}
	if !slices.IsSortedFunc(xidMeanings, func(a, b XIDMeaning) int { return int(a.Code) - int(b.Code) }) {
		t.Error("the table is searched by halves, and not sorted")
	}
}
