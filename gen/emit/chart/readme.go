package chart

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gpumeter/gpumeter/gen/emit"
)

// readmeOf is the page of the chart: all values, with their comments.
func readmeOf(values string) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(values), &doc); err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<!-- %s -->

# The Helm chart of gpumeter

One pod on each node with GPUs, the Prometheus operator's monitors and rules, and the dashboards.

`+"```sh"+`
helm install gpumeter ./charts/gpumeter --namespace monitoring --create-namespace --set preset=gpuOperator
`+"```"+`

A key that is not here is refused, and so are values that can not hold together. What buys a privilege says which.

| value | default | |
|---|---|---|
`, emit.Header(source))
	if err := rows(&b, "", doc.Content[0]); err != nil {
		return nil, err
	}
	return []byte(b.String()), nil
}

// rows has one for each value that is set by itself, and one for what is said of several.
func rows(b *strings.Builder, above string, n *yaml.Node) error {
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name, brief := above+key.Value, emit.Prose(briefOf(key.HeadComment))
		if value.Kind == yaml.MappingNode && len(value.Content) > 0 {
			if brief != "" {
				fmt.Fprintf(b, "| %s | | %s |\n", emit.Code(name), brief)
			}
			if err := rows(b, name+".", value); err != nil {
				return err
			}
			continue
		}
		var is any
		if err := value.Decode(&is); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		shown, err := json.Marshal(is)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if text, ok := is.(string); ok && text != "" {
			shown = []byte(text)
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", emit.Code(name), emit.Code(string(shown)), brief)
	}
	return nil
}

// choice is a line of a comment that begins what is said of one of several values.
var choice = regexp.MustCompile(`^#   (\S+) +`)

// briefOf is a comment as text.
func briefOf(comment string) string {
	lines := strings.Split(comment, "\n")
	for i, line := range lines {
		if m := choice.FindStringSubmatch(line); m != nil {
			lines[i-1] += ";"
			line = m[1] + ": " + line[len(m[0]):]
		}
		lines[i] = strings.TrimSpace(strings.TrimPrefix(line, "#"))
	}
	return strings.ReplaceAll(strings.Join(lines, " "), ":;", ":")
}
