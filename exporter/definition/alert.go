package definition

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
)

// alert is one alerting rule.
type alert struct {
	Name        string `json:"alert"`
	Summary     string `json:"summary"`
	Description string `json:"description"`
	Severity    string `json:"severity"`
	For         string `json:"for,omitempty"`
	Runbook     string `json:"runbook"`
	Group       string `json:"group"`
	File        string `json:"file"`
	Expr        string `json:"expr"`
}

// loadAlerts reads the alerts of the files for a Prometheus that reads files.
func loadAlerts(rules fs.FS) ([]alert, error) {
	files, err := fs.Glob(rules, "rules/plain/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("alerts: %w", err)
	}
	var out []alert
	for _, name := range files {
		var file struct {
			Groups []struct {
				Name  string
				Rules []struct {
					Alert       string
					Expr        string
					For         string
					Labels      map[string]string
					Annotations map[string]string
				}
			}
		}
		if err := read(rules, name, &file); err != nil {
			return nil, err
		}
		for _, g := range file.Groups {
			for _, r := range g.Rules {
				if r.Alert == "" {
					continue
				}
				out = append(out, alert{
					Name: r.Alert, Summary: r.Annotations["summary"], Description: r.Annotations["description"], Severity: r.Labels["severity"],
					For: r.For, Runbook: r.Annotations["runbook_url"], Group: g.Name, File: name, Expr: r.Expr,
				})
			}
		}
	}
	return out, nil
}

// text writes all there is to say of it.
func (a *alert) text(b *bytes.Buffer) {
	b.WriteString(a.Name + "\n")
	wrap(b, "  ", "  ", a.Summary)
	wrap(b, "  ", "  ", a.Description)
	b.WriteByte('\n')
	var rows [][2]string
	for _, r := range [][2]string{{"Severity", a.Severity}, {"For", a.For}, {"Group", a.Group}, {"File", a.File}, {"Runbook", a.Runbook}} {
		if r[1] != "" {
			rows = append(rows, r)
		}
	}
	table(b, "  ", rows)
	b.WriteString("\n  Expression\n")
	for line := range strings.Lines(strings.TrimRight(a.Expr, "\n")) {
		b.WriteString("    " + strings.TrimRight(line, "\n") + "\n")
	}
}
