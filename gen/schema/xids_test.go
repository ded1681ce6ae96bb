package schema

import (
	"strings"
	"testing"
)

const xids = "data/xids.yaml"

// catalogued is the tiny spec with a table of XIDs.
func catalogued() map[string]string {
	texts := tiny()
	texts[xids] = `source: https://example.com
date: "2025-10-29"
xids:
  - code: 62
    mnemonic: HALT
    brief: It halted.
    severity: critical
    who: operator
    action: reset
    advice: Reset it.
  - {code: 63, mnemonic: EVENT, brief: It happened., severity: info, who: nobody, action: none, advice: Nothing.}
`
	return texts
}

func TestXIDs(t *testing.T) {
	spec, err := Load(files(catalogued()))
	if err != nil {
		t.Fatal(err)
	}
	x := spec.XIDs
	if len(x.XIDs) != 2 || x.XIDs[0].Code != 62 || x.XIDs[1].Action != "none" || x.Date != "2025-10-29" {
		t.Errorf("read as %+v", x)
	}
	for want, got := range map[string]Pos{":1": x.Pos, ":4": x.XIDs[0].Pos, ":11": x.XIDs[1].Pos} {
		if got.String() != "spec/"+xids+want {
			t.Errorf("position %s, want line %s", got, want)
		}
	}
	if spec, err := Load(files(tiny())); err != nil || spec.XIDs != nil {
		t.Errorf("without the folder: %v, %v", spec, err)
	}
}

func TestXIDFaults(t *testing.T) {
	for _, x := range []struct{ old, new, want string }{
		{"severity: critical", "serverity: critical", `:7: unknown key "serverity"; did you mean "severity"?` + "\nspec/" + xids + `:4: xid 62: missing key "severity"`},
		{"severity: critical", "severity: critcal", `:7: severity: "critcal" is none of critical, warning, info; did you mean "critical"?`},
		{"who: nobody", "who: nobdy", `:11: who: "nobdy" is none of operator, application, vendor, nobody; did you mean "nobody"?`},
		{"    advice: Reset it.\n", "", `:4: xid 62: missing key "advice"`},
		{"code: 63", "code: -1", `:11: code: wants a whole number of at most 32 bits, not "-1"`},
		{`date: "2025-10-29"`, "date: 2025-10-29", `:2: date: wants text; put 2025-10-29 in quotes`},
		{`date: "2025-10-29"` + "\n", "", `:1: the file: missing key "date"`},
	} {
		texts := catalogued()
		if !strings.Contains(texts[xids], x.old) {
			t.Fatalf("no %q to replace", x.old)
		}
		texts[xids] = strings.Replace(texts[xids], x.old, x.new, 1)
		expect(t, texts, x.new, "spec/"+xids+x.want)
	}
	texts := catalogued()
	texts["data/xid.yaml"] = "x"
	expect(t, texts, "another file", "spec/data/xid.yaml: only xids.yaml and health.yaml belong here")
}
