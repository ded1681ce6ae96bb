package definition

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// printed is what Write prints of the sample as text.
func printed(t *testing.T, names ...string) string {
	t.Helper()
	root, _ := sample(t)
	var b bytes.Buffer
	if err := Write(&b, Sources{root, sampleRules, descs}, names, "text"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrite_ExplainsXID(t *testing.T) {
	const want = `XID 79: FALLEN_OFF_THE_BUS
  It is gone.
  It may be back.

  Severity  critical
  Action    reboot
  Who acts  operator
  Advice    Restart.
  Source    https://example.org/xids, 2025-10-29
`
	for _, name := range []string{"79", "xid79", "XID 79", "xid-79"} {
		if got := printed(t, name, "79"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestWrite_ExplainsAlert(t *testing.T) {
	const want = `GPUIdleWaste
  A GPU is idle.
  Held, and idle.

  Severity  warning
  For       30m
  Group     fleet
  File      rules/plain/fleet.yaml
  Runbook   https://example.org/idle

  Expression
      a
    and
      b
`
	for _, name := range []string{"GPUIdleWaste", "gpuidlewaste", "*Waste"} {
		if got := printed(t, name, "GPUIdleWaste"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
	if got := printed(t, "GPU*"); strings.Count(got, "Expression") != 2 || !strings.Contains(got, "\n\nGPUGone\n") {
		t.Errorf("GPU*:\n%s", got)
	}
}

// The files in the binary have what people look up, with the series of an XID error and its action.
func TestWrite_FilesInTheBinary(t *testing.T) {
	rules, err := gpumeter.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	from := Sources{gpumeter.Spec(), rules, telemetry.Descs()}
	var b bytes.Buffer
	if err := Write(&b, from, []string{"gpu.power", "xid79", "GPUIdleWaste"}, "text"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"gpu_power_draw_watts\n", "XID 79: ", `gpu_xid_errors_total{gpu_xid="79"}`, "reboot: Restart the machine.", "GPUIdleWaste\n", "rules.md#gpuidlewaste", "Expression\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("lacks %q:\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := Write(&b, from, []string{"gpu_up", "79", "GPUIdleWaste"}, "json"); err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	if err := json.Unmarshal(b.Bytes(), &all); err != nil || len(all) != 3 || all[0]["prometheus"] != "gpu_up" || all[1]["xid"] != 79.0 || all[2]["alert"] != "GPUIdleWaste" {
		t.Errorf("%v: %s", err, b.String())
	}
}
