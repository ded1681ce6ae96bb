package dashboards

import (
	"encoding/json"
	"strings"
	"testing"
)

// Each fault is found: a check that has never been seen to fail is none.
func TestLintFinds(t *testing.T) {
	boards := all(t)
	uids := map[string]board{}
	for _, b := range boards {
		uids[b.UID] = b
	}
	for want, spoil := range map[string]func(*board){
		"can be edited":                      func(b *board) { b.Editable = true },
		"description \"\"":                   func(b *board) { b.Description = "" },
		"tags []":                            func(b *board) { b.Tags = nil },
		"refresh \"\"":                       func(b *board) { b.Refresh = "" },
		"shows the time since now-30d":       func(b *board) { b.Time.From = "now-30d" },
		"want one to all others":             func(b *board) { b.Links[0].IncludeVars = false },
		"variable node: no label":            func(b *board) { b.Templating.List[2].Label = "" },
		"is not the data source":             func(b *board) { b.Templating.List[0].Name = "source" },
		"variable cluster: refresh 1":        func(b *board) { b.Templating.List[1].Refresh = 1 },
		"id 0 is none":                       func(b *board) { first(b).ID = 0 },
		"or there twice":                     func(b *board) { first(b).ID = b.Panels[0].ID },
		"no title or no description":         func(b *board) { first(b).Description = "" },
		"0 queries":                          func(b *board) { first(b).Targets = nil },
		"data source {Type:loki":             func(b *board) { first(b).Datasource.Type = "loki" },
		"query \"\"":                         func(b *board) { first(b).Targets[0].RefID = "" },
		"no unit":                            func(b *board) { first(b).FieldConfig.Defaults.Unit = "" },
		"parse error":                        func(b *board) { first(b).Targets[0].Expr = "sum(" },
		"no variable $pod":                   func(b *board) { first(b).Targets[0].Expr = `instance:gpu_devices:count{pod=~"$pod"}` },
		"no variable $__interval":            func(b *board) { first(b).Targets[0].Expr = `rate(a:b:c[$__interval])` },
		"gpu_up: job is selected: false":     func(b *board) { first(b).Targets[0].Expr = `gpu_up{cluster=~"$cluster",instance=~"$node"}` },
		"a:b:c: job is selected: true":       func(b *board) { first(b).Targets[0].Expr = `a:b:c{job="gpumeter"}` },
		"gpu_up: is not selected by cluster": func(b *board) { first(b).Targets[0].Expr = `gpu_up{job="gpumeter",instance=~"$node"}` },
		"only ever rises": func(b *board) {
			first(b).Targets[0].Expr = `sum(x_total{job="gpumeter",cluster=~"$cluster",instance=~"$node"})`
		},
		"opens /d/nothing, which is not there": func(b *board) { linked(b, "/d/nothing?var-gpu=1") },
		"with the variable colour":             func(b *board) { linked(b, "/d/gpumeter-gpu?var-colour=red") },
		"lies at":                              func(b *board) { first(b).GridPos.X = 23 },
		"lies on":                              func(b *board) { first(b).GridPos.X += 2 },
	} {
		var b board
		text, err := json.Marshal(boards["gpumeter-node.json"])
		if err == nil {
			err = json.Unmarshal(text, &b)
		}
		if err != nil {
			t.Fatal(err)
		}
		if said := lint(b, uids); said != nil {
			t.Fatalf("the dashboard is not sound to begin with: %q", said)
		}
		spoil(&b)
		if said := strings.Join(lint(b, uids), "\n"); !strings.Contains(said, want) {
			t.Errorf("want %q, it says %q", want, said)
		}
	}
}

// first is the first picture.
func first(b *board) *panel { return &b.Panels[1] }

func linked(b *board, url string) {
	first(b).FieldConfig.Defaults.Links = []struct{ URL string }{{url}}
}
