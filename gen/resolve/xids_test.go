package resolve_test

import (
	"testing"

	"github.com/gpumeter/gpumeter/gen/gentest"
)

const xids = "data/xids.yaml"

func TestXIDs(t *testing.T) {
	x := gentest.Model(t).XIDs
	if len(x.Codes) != 2 || x.Codes[0].GoAction != "XIDActionReset" || x.Codes[1].GoAction != "XIDActionNone" || x.Unlisted != "XIDActionUnknown" {
		t.Errorf("resolved as %+v", x)
	}
}

func TestXIDPolicies(t *testing.T) {
	for _, x := range []struct{ file, old, new, want string }{
		{xids, "action: reset", "action: rset", `spec/data/xids.yaml:4: xid 62: action "rset" is no member of gpu.xid_action; did you mean "reset"?`},
		{xids, "action: none", "action: unknown", `spec/data/xids.yaml:11: xid 63: action unknown is for codes that are not here`},
		{xids, "code: 63", "code: 62", `spec/data/xids.yaml:11: xid 62: is there twice, first at spec/data/xids.yaml:4`},
		{xids, "code: 63", "code: 61", `spec/data/xids.yaml:11: xid 61: stands after 62; codes rise`},
		{xids, "PMU_HALT_ERROR", "pmu halt", `spec/data/xids.yaml:4: xid 62: mnemonic "pmu halt" is not of upper-case words joined by underscores`},
		{xids, "advice: Reset it.", "advice: Reset it", `spec/data/xids.yaml:4: xid 62: advice: a brief is a sentence and ends with a full stop`},
		{xids, "brief: It halted | or seemed to.", "brief: It halted", `spec/data/xids.yaml:4: xid 62: a brief is a sentence and ends with a full stop`},
		{xids, "2025-10-29", "October 2025", `spec/data/xids.yaml:1: date "October 2025" is not of the form 2025-10-29`},
		{"attributes.yaml", "{id: unknown,", "{id: strange,", `spec/attributes.yaml:50: gpu.xid_action: no member "unknown", which codes need that spec/data/xids.yaml does not have`},
	} {
		refused(t, x.new, x.want, edit{x.file, x.old, x.new})
	}
	refused(t, "no attribute", "spec/data/xids.yaml:1: no attribute gpu.xid_action in spec/attributes.yaml, whose members are the actions",
		edit{"attributes.yaml", "key: gpu.xid_action", "key: gpu.xid_class"},
		edit{"metrics/events.yaml", "[gpu.xid_action]", "[gpu.xid_class]"})
}
