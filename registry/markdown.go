package registry

import (
	"fmt"
	"strings"
)

// Markdown returns the README's table: a row a family, its stages by name.
func (s *Set) Markdown() string {
	var families []string
	names := map[string][]string{}
	for i := range s.stages {
		family, name, _ := strings.Cut(s.stages[i].Name, "/")
		if names[family] == nil {
			families = append(families, family)
		}
		names[family] = append(names[family], name)
	}
	var b strings.Builder
	b.WriteString("| family | stages |\n|---|---|\n")
	for _, f := range families {
		fmt.Fprintf(&b, "| [%s](stages/%s) | %s |\n", f, f, strings.Join(names[f], ", "))
	}
	return b.String()
}
