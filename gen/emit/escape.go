package emit

import "strings"

// Prose makes text of the spec show in Markdown as it is written, in a table too.
func Prose(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "\n", " ").Replace(strings.TrimSpace(s))
}

// Code shows a name or a value in Markdown as it is written, in a table too.
func Code(s string) string {
	return "`" + strings.NewReplacer("|", `\|`, "`", "'", "\n", " ").Replace(s) + "`"
}
