package emit

import (
	"bytes"
	"fmt"
	"maps"
	"text/template"
)

// Page is a page of Markdown made from a template, which has header, prose and code beside functions of
// its own.
type Page struct {
	path     string
	template *template.Template
}

// NewPage parses the text of a template that is compiled in.
func NewPage(path, text string, own template.FuncMap) Page {
	all := template.FuncMap{"header": Header, "prose": Prose, "code": Code}
	maps.Copy(all, own)
	return Page{path, template.Must(template.New("").Option("missingkey=error").Funcs(all).Parse(text))}
}

// Of executes the named template.
func (p Page) Of(name string, data any) ([]File, error) {
	var b bytes.Buffer
	if err := p.template.ExecuteTemplate(&b, name, data); err != nil {
		return nil, fmt.Errorf("%s: %w", p.path, err)
	}
	return []File{{Path: p.path, Data: b.Bytes()}}, nil
}
