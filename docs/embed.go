// Package docs holds what the command carries of the pages in this folder.
package docs

import (
	_ "embed"
	"strings"
)

//go:embed language.md
var language string

//go:embed coming-from.md
var comingFrom string

// ComingFrom returns the page with the names that other libraries have for stages.
func ComingFrom() string { return comingFrom }

// Example returns the first example of language.md, an experiment that has every key of the language, with
// comments.
func Example() string {
	_, rest, _ := strings.Cut(language, "\n```yaml")
	_, rest, _ = strings.Cut(rest, "\n")
	example, _, _ := strings.Cut(rest, "```")
	return example
}
